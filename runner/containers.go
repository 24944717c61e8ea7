package runner

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/prepared"
	"github.com/podrun/podrun/runner/sandbox"
)

// startContainer starts one instance, and has its exit awaited. prepared is the container that was prepared
// for it, or nil.
func (e *engine) startContainer(a lifecycle.Action, prepared *prepared.Container) {
	plan := e.currentPlan()
	c, ok := plan.Container(a.Container)
	if !ok {
		panic("runner: no container " + a.Container)
	}
	s := e.currentSandbox()
	target, err := e.pidTarget(c)
	x := e.prepared.Claim(prepared, s, c, a.Attempt)
	switch {
	case x != nil:
		err = x.Start(s)
	case err == nil:
		e.prepared.AwaitRemoval(c.Name)
		x, err = container.Start(s, c, a.Attempt, target)
	}
	if err != nil {
		e.dropInstance(c.Name)
		e.mu.Lock()
		e.prepared.AddStarting(-1)
		e.mu.Unlock()
		e.checkPauseProcess(s)
		e.emit(startFailedEvent(a, err))
		e.addBusy(-1)
		return
	}
	e.mu.Lock()
	e.prepared.AddStarting(-1)
	e.instances[c.Name].container = x
	killed := e.instances[c.Name].killed
	e.mu.Unlock()
	if killed {
		e.signalContainer(c.Name, true)
	}
	e.resizeIfReplanned(plan)
	e.emit(lifecycle.Event{Kind: lifecycle.Started, Container: c.Name, Attempt: a.Attempt, ContainerID: container.FullID(plan, x), User: x.Identity.PodUser()})
	e.addBusy(-1)
	go e.awaitExit(s, x) // runs until the container exits: a fresh goroutine has a small stack
}

// pidTarget returns the running container whose PID namespace c joins, or nil if c has no target.
func (e *engine) pidTarget(c *pod.Container) (*container.Container, error) {
	if c.Target == "" {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.instances[c.Target]
	if r == nil || r.container == nil || r.container.Exit != nil {
		return nil, sandbox.NewConfigError(fmt.Errorf("its target, container %s, is not running", c.Target))
	}
	return r.container, nil
}

// awaitExit waits until a running container exits and emits the Exited event. The container is removed only
// after its exit is recorded: if this supervisor is killed before that, the next supervisor still finds what
// describes the exit.
func (e *engine) awaitExit(s *sandbox.Sandbox, x *container.Container) {
	x.Log.NotifyLoss(func() { e.warn(x.Log.LossWarning(x.Plan.Name)) })
	x.Log.NotifyMissing(func(lines int64, err error) {
		message := fmt.Sprintf("%d lines of the output of container %s are missing in its log", lines, x.Plan.Name)
		if err != nil {
			message += ": " + err.Error()
		}
		e.emit(lifecycle.Event{Kind: lifecycle.Warned, Reason: lifecycle.ReasonLogLinesLost, Message: message})
	})
	end := x.Exit
	if end == nil {
		end = container.NewExit(e.handoff.Exits.Wait(x.Process))
	}
	e.addBusy(1)
	defer e.addBusy(-1)
	e.dropInstance(x.Plan.Name)
	x.Finish(s)
	x.Broadcaster.Finish(end.Code)
	e.warn(x.Log.LossWarning(x.Plan.Name))
	if x.Exit == nil {
		if s.Cgroup != nil {
			end.OOM, end.OOMLimit = outOfMemory(s.Cgroup, x.Plan.Name)
		}
		if end.Message == "" {
			end.Message = x.TerminationMessage(e.pod.LogDir(x.Plan.Name), end.Code)
		}
	}
	e.mu.Lock()
	e.exited = append(e.exited, x)
	e.mu.Unlock()
	e.checkPauseProcess(s)
	e.emit(lifecycle.Event{
		At: end.At, Kind: lifecycle.Exited, Container: x.Plan.Name, Attempt: x.Attempt,
		ExitCode: end.Code, Signal: end.Signal, OOMKilled: end.OOM, OOMLimit: end.OOMLimit, Message: end.Message,
	})
}

// outOfMemory reports whether the OOM killer ended a container, and whose memory limit was reached.
func outOfMemory(cg *cgroups.Pod, container string) (bool, lifecycle.OOMLimit) {
	reason, err := cg.OOM(container)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	switch reason {
	case cgroups.NoOOM:
		return false, ""
	case cgroups.OOMContainer:
		return true, lifecycle.OOMContainer
	case cgroups.OOMPod:
		return true, lifecycle.OOMPod
	}
	return true, lifecycle.OOMMachine
}
