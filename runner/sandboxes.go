package runner

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/netns/resolvconf"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// beginSandbox registers a new sandbox. From then on containers can be prepared in it.
func (e *engine) beginSandbox(attempt int) *sandbox.Sandbox {
	s := e.newSandbox(e.currentPlan(), attempt)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.creating = s
	e.busy++
	return s
}

// prepare prepares the containers that are likely to be started next, and discards all others.
func (e *engine) prepare(next lifecycle.Preparation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sandbox
	if e.creating != nil {
		s = e.creating
	}
	e.prepared.Prepare(e.plan, s, s == e.creating, next)
}

// discardPrepared removes all prepared containers, and waits for removals under way.
func (e *engine) discardPrepared() {
	e.prepare(lifecycle.Preparation{})
	e.prepared.AwaitRemovals(e.currentPlan())
}

// abandonSandbox drops a sandbox that cannot be made: nothing is prepared in it any more.
func (e *engine) abandonSandbox() {
	e.mu.Lock()
	e.creating = nil
	e.mu.Unlock()
	e.discardPrepared()
}

func (e *engine) createSandbox(s *sandbox.Sandbox) {
	defer e.addBusy(-1)
	plan, attempt := s.Plan, s.Attempt
	if err := s.Create(e.abandonSandbox); err != nil {
		kind := lifecycle.SandboxFailed
		if errors.As(err, new(sandbox.VolumeErrors)) {
			kind = lifecycle.VolumesFailed
		}
		e.emit(lifecycle.Event{Kind: kind, Attempt: attempt, Message: err.Error()})
		return
	}
	e.mu.Lock()
	warnings := s.Warnings()
	e.sandbox, e.creating, e.warnings = s, nil, warnings
	e.mu.Unlock()
	e.handoff.Update(func(st *handoff.State) {
		st.PauseProcess, st.Warnings = s.PauseProcess, warnings
		if s.Cgroup != nil {
			st.Cgroup = s.Cgroup.Path()
		}
	})
	e.resizeIfReplanned(plan)
	if err := s.UpdatePolicies(); err != nil { // objectChanged had no sandbox while this one was being made
		s.WarnOfPolicies(err)
	}
	e.emitResolvEvents(s.ResolvEvents)
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxReady, Attempt: attempt})
	e.watchPauseProcess(s)
}

func (e *engine) removeSandbox(attempt int) {
	defer e.addBusy(-1)
	e.mu.Lock()
	s := e.sandbox
	e.sandbox = nil
	e.mu.Unlock()
	var message string
	e.sockets.Close()
	e.closeProbeCounters()
	if s != nil {
		e.discardPrepared()
		if err := s.Remove(); err != nil {
			message = err.Error()
			fmt.Fprintln(os.Stderr, "remove sandbox:", err)
		}
	}
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxRemoved, Attempt: attempt, Message: message})
}

// freeze freezes or thaws the containers' processes and emits an event when that is done.
func (e *engine) freeze(frozen bool) {
	e.mu.Lock()
	s := e.sandbox
	e.busy++
	e.mu.Unlock()
	if s != nil {
		s.Freezer.Set(frozen)
	}
	go func() {
		defer e.addBusy(-1)
		kind := lifecycle.Thawed
		if frozen {
			kind = lifecycle.Frozen
		}
		if s != nil && s.Cgroup != nil {
			is, err := s.Freezer.Apply(s.Cgroup)
			if err == nil && is {
				err = s.Cgroup.AwaitFrozen(freezeTimeout)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			if err != nil && frozen {
				kind = lifecycle.UnpauseRequested // undo it as if the user had requested that
			}
		}
		e.emit(lifecycle.Event{Kind: kind})
	}()
}

// freezeTimeout is the time limit for processes to freeze: a process that waits for a disk cannot.
const freezeTimeout = 30 * time.Second

// emitResolvEvents adds pod events for what was left out of resolv.conf.
func (e *engine) emitResolvEvents(events []resolvconf.Event) {
	for _, ev := range events {
		e.emit(lifecycle.Event{Kind: lifecycle.Warned, Reason: ev.Reason, Message: ev.Message})
	}
}

// watchPauseProcess waits for the end of the pause process. The kernel then kills every container, and none
// can be started in the shared PID namespace.
func (e *engine) watchPauseProcess(s *sandbox.Sandbox) {
	if s.PauseProcess.PID == 0 {
		return
	}
	go func() {
		if _, err := e.handoff.Exits.Wait(s.PauseProcess); err != nil {
			return // it was removed on purpose
		}
		e.reportSandboxLost(s)
	}()
}

func (e *engine) reportSandboxLost(s *sandbox.Sandbox) {
	e.mu.Lock()
	lost := e.sandbox == s
	e.mu.Unlock()
	if lost {
		e.emit(lifecycle.Event{Kind: lifecycle.SandboxFailed, Attempt: s.Attempt, Message: "the first process of the shared PID namespace has ended"})
	}
}

// checkPauseProcess reports the end of the sandbox if it is the cause of a container's exit or of a failed
// start. The loop must get that event before the container's. The pause process may still be exiting: the
// kernel ends it after the containers.
func (e *engine) checkPauseProcess(s *sandbox.Sandbox) {
	if s.PauseProcess.PID == 0 {
		return
	}
	if st, ok := procfs.Lookup(s.PauseProcess.PID); !ok || st.Process != s.PauseProcess || st.Exiting {
		e.reportSandboxLost(s)
	}
}
