package runner

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// runContainer runs one instance from its creation to its end. early is what was prepared
// for it, or nil.
func (e *engine) runContainer(a lifecycle.Action, early *prepared) {
	plan := e.current()
	c, ok := plan.Container(a.Container)
	if !ok {
		panic("runner: no container " + a.Container)
	}
	s := e.currentSandbox()
	beside, err := e.beside(c)
	x := e.pool.takePrepared(early, s, c, a.Attempt)
	switch {
	case x != nil:
		err = x.start(s)
	case err == nil:
		e.pool.awaitRemoval(c.Name)
		x, err = startContainer(s, c, a.Attempt, beside)
	}
	if err != nil {
		e.forget(c.Name)
		e.mu.Lock()
		e.pool.stir(-1)
		e.mu.Unlock()
		e.checkGuard(s)
		e.emit(startFailed(a, err))
		e.work(-1)
		return
	}
	e.mu.Lock()
	e.pool.stir(-1)
	e.runs[c.Name].container = x
	doomed := e.runs[c.Name].doomed
	e.mu.Unlock()
	if doomed {
		e.signal(c.Name, true)
	}
	e.resizeLate(plan)
	e.emit(lifecycle.Event{Kind: lifecycle.Started, Container: c.Name, Attempt: a.Attempt, ContainerID: containerID(plan, x), User: x.who.user()})
	e.work(-1)
	go e.follow(s, x) // for as long as it runs: by a goroutine whose stack has not had to grow
}

// beside is the container whose PID namespace another one is to share, or nil.
func (e *engine) beside(c *pod.Container) (*container, error) {
	if c.Target == "" {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.runs[c.Target]
	if r == nil || r.container == nil || r.container.end != nil {
		return nil, newConfigError(fmt.Errorf("its target, container %s, is not running", c.Target))
	}
	return r.container, nil
}

// follow waits for the end of a running container and tells. It is removed once that is on
// record: a supervisor that is killed before leaves the next one all that tells of the end.
func (e *engine) follow(s *sandbox, x *container) {
	x.log.tellLoss(func() { e.warn(x.log.warning(x.plan.Name)) })
	end := x.end
	if end == nil {
		end = endOf(e.estate.ends.wait(x.process))
	}
	e.work(1)
	defer e.work(-1)
	e.forget(x.plan.Name)
	x.finish(s)
	x.audience.end(end.Code)
	e.warn(x.log.warning(x.plan.Name))
	if x.end == nil {
		if s.cgroup != nil {
			end.OOM, end.OOMLimit = outOfMemory(s.cgroup, x.plan.Name)
		}
		if end.Message == "" {
			end.Message = x.terminationMessage(e.store.LogDir(x.plan.Name), end.Code)
		}
	}
	e.mu.Lock()
	e.ended = append(e.ended, x)
	e.mu.Unlock()
	e.checkGuard(s)
	e.emit(lifecycle.Event{
		At: end.At, Kind: lifecycle.Exited, Container: x.plan.Name, Attempt: x.attempt,
		ExitCode: end.Code, Signal: end.Signal, OOMKilled: end.OOM, OOMLimit: end.OOMLimit, Message: end.Message,
	})
}

// outOfMemory says whether a container's end was for want of memory, and whose.
func outOfMemory(cg *cgroups.Pod, container string) (bool, lifecycle.OOMLimit) {
	why, err := cg.OOM(container)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	switch why {
	case cgroups.NoOOM:
		return false, ""
	case cgroups.OOMContainer:
		return true, lifecycle.OOMContainer
	case cgroups.OOMPod:
		return true, lifecycle.OOMPod
	}
	return true, lifecycle.OOMMachine
}
