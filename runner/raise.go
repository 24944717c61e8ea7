package runner

import (
	"errors"
	"fmt"
	"os"

	"github.com/podrun/podrun/lifecycle"
)

// raise begins a sandbox: what is to be started in it can be prepared from now on.
func (e *engine) raise(attempt int) *sandbox {
	s := e.newSandbox(e.current(), attempt)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rising = s
	e.busy++
	return s
}

// abandon is for a sandbox that cannot be made: nothing is prepared in it any more.
func (e *engine) abandon() {
	e.mu.Lock()
	e.rising = nil
	e.mu.Unlock()
	e.discardPrepared()
}

func (e *engine) createSandbox(s *sandbox) {
	defer e.work(-1)
	plan, attempt := s.plan, s.attempt
	if err := s.create(e.abandon); err != nil {
		kind := lifecycle.SandboxLost
		if errors.As(err, new(unmounted)) {
			kind = lifecycle.VolumesFailed
		}
		e.emit(lifecycle.Event{Kind: kind, Attempt: attempt, Message: err.Error()})
		return
	}
	e.mu.Lock()
	warnings := s.warned()
	e.sandbox, e.rising, e.warnings = s, nil, warnings
	e.mu.Unlock()
	e.estate.record(func(left *state) {
		left.Pause, left.Warnings = s.pause, warnings
		if s.cgroup != nil {
			left.Cgroup = s.cgroup.Path()
		}
	})
	e.resizeLate(plan)
	e.noteNames(s.events)
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxReady, Attempt: attempt})
	e.guard(s)
}

func (e *engine) removeSandbox(attempt int) {
	defer e.work(-1)
	e.mu.Lock()
	s := e.sandbox
	e.sandbox = nil
	e.mu.Unlock()
	var message string
	e.sockets.close()
	if s != nil {
		e.discardPrepared()
		if err := s.remove(); err != nil {
			message = err.Error()
			fmt.Fprintln(os.Stderr, "remove sandbox:", err)
		}
	}
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxGone, Attempt: attempt, Message: message})
}
