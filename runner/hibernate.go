package runner

import (
	"os"
	"os/signal"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/handoff"
)

// A pod that is quiet needs no supervisor: it ends, and the keeper, which watches what it
// watched, begins another when something happens. That one takes the pod up as it does
// after a death.

// How long a pod has to be quiet for its supervisor to doze: at first, and at most.
// Each time that it is woken soon the next wait is twice as long, so that a pod that
// logs now and then does not keep executing programs.
const (
	defaultHibernateAfter = 2 * time.Second
	maxHibernateAfter     = 5 * time.Minute
	wokenEarly            = time.Minute
)

// minHibernation is for how long at least a supervisor must have nothing to do to doze: falling
// asleep and waking costs as much as a hundred probes. One with a probe every ten
// seconds stays awake.
const minHibernation = 15 * time.Second

// hibernateAfter is the environment's PODRUN_HIBERNATE_AFTER (as "2s"; "0" never), which the
// pod has from the one who started it.
func hibernateAfter() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODRUN_HIBERNATE_AFTER"))
	if err != nil || d < 0 {
		return defaultHibernateAfter
	}
	return d
}

// nextIdleTime is for how long the next supervisor has to be quiet.
func nextIdleTime(l handoff.Hibernation) time.Duration {
	switch now := clock.Boot(); {
	case l.Idle == 0 || now-l.Since > wokenEarly:
		return hibernateAfter()
	case l.Wake > 0 && now >= l.Wake:
		return l.Idle // it woke when it had meant to: the pod is as quiet as before
	}
	return min(2*l.Idle, maxHibernateAfter)
}

// hibernate ends the supervisor if nothing is under way, and does not return then. wake is
// when the loop must decide again (CLOCK_BOOTTIME; 0: never). It must be called by the
// loop, the only reader of events.
func (s *supervisor) hibernate(_ *lifecycle.Observed, wake time.Duration) {
	defer func() { s.idleAfter = min(2*s.idleAfter, maxHibernateAfter) }()
	if !s.control.pause(s.listener) {
		return
	}
	defer s.control.resume(s.listener)
	e := s.engine
	if !e.idleWithoutPrepared(s.idleAfter) {
		return
	}
	if !e.hostPorts.Pause() {
		return
	}
	defer e.hostPorts.Resume()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.idle(s.idleAfter) || !e.sandbox.PauseIfIdle() {
		return
	}
	defer e.sandbox.Resume()
	for _, r := range e.runs {
		r.container.PauseOutput()
		defer r.container.ResumeOutput(e.handoff)
	}
	said, ping := e.notifier.HibernationState()
	e.handoff.Update(func(left *handoff.State) {
		left.Hibernation = handoff.Hibernation{Since: clock.Boot(), Wake: wake, Idle: s.idleAfter, NotifyStatus: said}
		for i := range left.Runs {
			if r := e.runs[left.Runs[i].Name]; r != nil {
				left.Runs[i].Streams = r.container.SaveStreams(e.handoff)
			}
		}
	})
	s.releaseStops()
	if len(e.events) > 0 || e.handoff.Failed() {
		signal.Notify(s.stops, stopSignals...)
		return
	}
	e.handoff.PodInit.Hibernate(wake, ping)
	os.Exit(0)
}

// idleWithoutPrepared says whether the engine is idle, and discards what is prepared then: the pod
// keeps nothing of it while it dozes.
func (e *engine) idleWithoutPrepared(quiet time.Duration) bool {
	e.mu.Lock()
	idle := e.idle(quiet)
	e.mu.Unlock()
	if idle {
		e.discardPrepared()
	}
	return idle
}

// idle says whether nothing is under way and nothing was logged within a time. The
// caller holds mu.
func (e *engine) idle(quiet time.Duration) bool {
	if e.busy > 0 || e.prewarm.Busy > 0 || len(e.exited) > 0 || len(e.events) > 0 || e.sandbox == nil {
		return false
	}
	for _, r := range e.runs {
		if r.container == nil || r.container.Log.WroteWithin(quiet) {
			return false
		}
	}
	return true
}
