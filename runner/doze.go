package runner

import (
	"os"
	"os/signal"
	"time"

	"github.com/podrun/podrun/lifecycle"
)

// A pod that is quiet needs no supervisor: it ends, and the keeper, which watches what it
// watched, begins another when something happens. That one takes the pod up as it does
// after a death.

// How long a pod has to be quiet for its supervisor to doze: at first, and at most.
// Each time that it is woken soon the next wait is twice as long, so that a pod that
// logs now and then does not keep executing programs.
const (
	firstDoze = 2 * time.Second
	lastDoze  = 5 * time.Minute
	soon      = time.Minute
)

// nap is for how long at least a supervisor must have nothing to do to doze: falling
// asleep and waking costs as much as a hundred probes. One with a probe every ten
// seconds stays awake.
const nap = 15 * time.Second

// dozeAfter is the environment's PODRUN_DOZE_AFTER (as "2s"; "0" never), which the
// pod has from the one who started it.
func dozeAfter() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODRUN_DOZE_AFTER"))
	if err != nil || d < 0 {
		return firstDoze
	}
	return d
}

// nextQuiet is for how long the next supervisor has to be quiet.
func nextQuiet(l sleep) time.Duration {
	switch now := bootTime(); {
	case l.Quiet == 0 || now-l.Since > soon:
		return dozeAfter()
	case l.Wake > 0 && now >= l.Wake:
		return l.Quiet // it woke when it had meant to: the pod is as quiet as before
	}
	return min(2*l.Quiet, lastDoze)
}

// doze ends the supervisor if nothing is under way, and does not return then. wake is
// when the loop must decide again (CLOCK_BOOTTIME; 0: never). It must be called by the
// loop, the only reader of events.
func (s *supervisor) doze(_ *lifecycle.Observed, wake time.Duration) {
	defer func() { s.quiet = min(2*s.quiet, lastDoze) }()
	if !s.control.pause(s.listener) {
		return
	}
	defer s.control.resume(s.listener)
	e := s.engine
	if !e.unprepared(s.quiet) {
		return
	}
	if !e.published.pause() {
		return
	}
	defer e.published.resume()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.idle(s.quiet) || !e.sandbox.still() {
		return
	}
	defer e.sandbox.resume()
	for _, r := range e.runs {
		r.container.pause()
		defer r.container.resume(e.estate)
	}
	said, ping := e.herald.asleep()
	e.estate.record(func(left *state) {
		left.Sleep = sleep{Since: bootTime(), Wake: wake, Quiet: s.quiet, Said: said}
		for i := range left.Runs {
			if r := e.runs[left.Runs[i].Name]; r != nil {
				left.Runs[i].Streams = r.container.quietOutputs(e.estate)
			}
		}
	})
	s.passStops()
	if len(e.events) > 0 || e.estate.broken() {
		signal.Notify(s.stops, stopSignals...)
		return
	}
	e.estate.keeper.Doze(wake, ping)
	os.Exit(0)
}

// unprepared says whether the engine is idle, and discards what is prepared then: the pod
// keeps nothing of it while it dozes.
func (e *engine) unprepared(quiet time.Duration) bool {
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
	if e.busy > 0 || e.pool.busy > 0 || len(e.ended) > 0 || len(e.events) > 0 || e.sandbox == nil {
		return false
	}
	for _, r := range e.runs {
		if r.container == nil || r.container.log.wroteSince(quiet) {
			return false
		}
	}
	return true
}
