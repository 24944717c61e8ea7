package runner

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/netns/resolvconf"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// beginSandbox begins a sandbox: what is to be started in it can be prepared from now on.
func (e *engine) beginSandbox(attempt int) *sandbox.Sandbox {
	s := e.newSandbox(e.currentPlan(), attempt)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.creating = s
	e.busy++
	return s
}

// prepare has those containers made, and no others, that are likely to be started next.
func (e *engine) prepare(starts []lifecycle.Action) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sandbox
	if e.creating != nil {
		s = e.creating
	}
	e.prewarm.Prepare(e.plan, s, s == e.creating, starts)
}

// discardPrepared removes all that was prepared, and whatever else is being removed.
func (e *engine) discardPrepared() {
	e.prepare(nil)
	e.prewarm.AwaitRemovals(e.currentPlan())
}

// abandonSandbox is for a sandbox that cannot be made: nothing is prepared in it any more.
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
		kind := lifecycle.SandboxLost
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
	e.handoff.Update(func(left *handoff.State) {
		left.Pause, left.Warnings = s.PauseProcess, warnings
		if s.Cgroup != nil {
			left.Cgroup = s.Cgroup.Path()
		}
	})
	e.resizeIfReplanned(plan)
	e.emitResolvEvents(s.ResolvEvents)
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxReady, Attempt: attempt})
	e.watchPause(s)
}

func (e *engine) removeSandbox(attempt int) {
	defer e.addBusy(-1)
	e.mu.Lock()
	s := e.sandbox
	e.sandbox = nil
	e.mu.Unlock()
	var message string
	e.sockets.Close()
	if s != nil {
		e.discardPrepared()
		if err := s.Remove(); err != nil {
			message = err.Error()
			fmt.Fprintln(os.Stderr, "remove sandbox:", err)
		}
	}
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxGone, Attempt: attempt, Message: message})
}

// freeze has the kernel hold the containers' processes, or let them go on, and tells the
// loop when that is so.
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
				kind = lifecycle.ResumeWanted
			}
		}
		e.emit(lifecycle.Event{Kind: kind})
	}()
}

// freezeTimeout is how long processes may take to stop: one that waits for a disk cannot.
const freezeTimeout = 30 * time.Second

// emitResolvEvents tells the pod's events what had to be left out.
func (e *engine) emitResolvEvents(events []resolvconf.Event) {
	for _, ev := range events {
		e.emit(lifecycle.Event{Kind: lifecycle.Warned, Reason: ev.Reason, Message: ev.Message})
	}
}

// watchPause tells of the end of the shared PID namespace, which takes every container
// with it and lets none be started: of its first process, that is.
func (e *engine) watchPause(s *sandbox.Sandbox) {
	if s.PauseProcess.PID == 0 {
		return
	}
	go func() {
		if _, err := e.handoff.Exits.Wait(s.PauseProcess); err != nil {
			return // it was taken away
		}
		e.reportSandboxLost(s)
	}()
}

func (e *engine) reportSandboxLost(s *sandbox.Sandbox) {
	e.mu.Lock()
	lost := e.sandbox == s
	e.mu.Unlock()
	if lost {
		e.emit(lifecycle.Event{Kind: lifecycle.SandboxLost, Attempt: s.Attempt, Message: "the first process of the shared PID namespace has ended"})
	}
}

// checkPause is for when a container has ended, or cannot be started: whether that is the
// sandbox's end has to be known before. The kernel ends a namespace's first process last.
func (e *engine) checkPause(s *sandbox.Sandbox) {
	if s.PauseProcess.PID == 0 {
		return
	}
	if st, ok := procfs.Lookup(s.PauseProcess.PID); !ok || st.Process != s.PauseProcess || st.Exiting {
		e.reportSandboxLost(s)
	}
}
