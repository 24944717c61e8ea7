package runner

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/netns/resolvconf"
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

// prepare has those containers made, and no others, that are likely to be started next.
func (e *engine) prepare(starts []lifecycle.Action) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sandbox
	if e.rising != nil {
		s = e.rising
	}
	e.pool.prepare(e.plan, s, s == e.rising, starts)
}

// discardPrepared removes all that was prepared, and whatever else is being removed.
func (e *engine) discardPrepared() {
	e.prepare(nil)
	e.pool.awaitRemovals(e.current())
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

// freeze has the kernel hold the containers' processes, or let them go on, and tells the
// loop when that is so.
func (e *engine) freeze(frozen bool) {
	e.mu.Lock()
	s := e.sandbox
	e.busy++
	e.mu.Unlock()
	if s != nil {
		s.freezer.want(frozen)
	}
	go func() {
		defer e.work(-1)
		kind := lifecycle.Thawed
		if frozen {
			kind = lifecycle.Frozen
		}
		if s != nil && s.cgroup != nil {
			is, err := s.freezer.follow(s.cgroup)
			if err == nil && is {
				err = s.cgroup.AwaitFrozen(freezeTime)
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

// freezeTime is how long processes may take to stop: one that waits for a disk cannot.
const freezeTime = 30 * time.Second

// noteNames tells the pod's events what had to be left out.
func (e *engine) noteNames(events []resolvconf.Event) {
	for _, ev := range events {
		e.emit(lifecycle.Event{Kind: lifecycle.Warned, Reason: ev.Reason, Message: ev.Message})
	}
}

// guard tells of the end of the shared PID namespace, which takes every container
// with it and lets none be started: of its first process, that is.
func (e *engine) guard(s *sandbox) {
	if s.pause.PID == 0 {
		return
	}
	go func() {
		if _, err := e.estate.ends.wait(s.pause); err != nil {
			return // it was taken away
		}
		e.tellLost(s)
	}()
}

func (e *engine) tellLost(s *sandbox) {
	e.mu.Lock()
	lost := e.sandbox == s
	e.mu.Unlock()
	if lost {
		e.emit(lifecycle.Event{Kind: lifecycle.SandboxLost, Attempt: s.attempt, Message: "the first process of the shared PID namespace has ended"})
	}
}

// checkGuard is for when a container has ended, or cannot be started: whether that is the
// sandbox's end has to be known before. The kernel ends a namespace's first process last.
func (e *engine) checkGuard(s *sandbox) {
	if s.pause.PID == 0 {
		return
	}
	if st, ok := stat(s.pause.PID); !ok || st.process != s.pause || st.ending {
		e.tellLost(s)
	}
}
