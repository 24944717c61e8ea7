package runner

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/handoff"
)

// An idle pod needs no supervisor. The supervisor exits. Pod init watches the descriptors that the
// supervisor watched, and starts another supervisor at the next event. That one recovers the pod as it does
// after a crash.

// A pod must be idle for a time before its supervisor hibernates: at first defaultHibernateAfter. Each early
// wake-up (after less than wokenEarly) doubles the time, up to maxIdleFactor times the first, which is five
// minutes. So a pod that logs now and then does not execute programs all the time.
const (
	defaultHibernateAfter = 2 * time.Second
	maxIdleFactor         = 150
	wokenEarly            = time.Minute
)

// minHibernation is the minimal time until the next decision for which a supervisor hibernates: hibernating
// and waking costs as much as a hundred probes.
const minHibernation = 15 * time.Second

// hibernateAfter returns PODRUN_HIBERNATE_AFTER from the environment (as "2s"; "0": never), which the
// process that started the pod sets.
func hibernateAfter() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODRUN_HIBERNATE_AFTER"))
	if err != nil || d < 0 {
		return defaultHibernateAfter
	}
	return d
}

// nextIdleTime returns the time for which the pod must be idle before the next hibernation.
func nextIdleTime(l handoff.Hibernation) time.Duration {
	switch now := clock.Boot(); {
	case l.Idle == 0 || now-l.Since > wokenEarly:
		return hibernateAfter()
	case l.Wake > 0 && now >= l.Wake:
		return l.Idle // it woke at the planned time: the pod is as idle as before
	}
	return doubleIdleTime(l.Idle)
}

func doubleIdleTime(d time.Duration) time.Duration { return min(2*d, maxIdleFactor*hibernateAfter()) }

// hibernate ends the supervisor if nothing is under way; in that case it does not return. The pod init does
// what is left to do. Only the loop may call it, as the only reader of events.
func (s *supervisor) hibernate(left lifecycle.Delegation) {
	// A failed attempt doubles the idle time. After a success this process is gone.
	defer func() { s.idleAfter = doubleIdleTime(s.idleAfter) }()
	if len(left.Probes) > protocol.MaxProbes { // so many probers need more memory than this process
		return
	}
	if !s.control.stopAccepting(s.listener) {
		return
	}
	defer s.control.startAccepting(s.listener)
	e := s.engine
	if !e.discardPreparedIfIdle(s.idleAfter) {
		return
	}
	if !e.hostPorts.Suspend() {
		return
	}
	defer e.hostPorts.Continue()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isIdle(s.idleAfter) || !e.sandbox.SuspendIfIdle() {
		return
	}
	defer e.sandbox.Continue()
	if err := e.delegate(left.Probes); err != nil {
		fmt.Fprintln(os.Stderr, "leave the probes to the pod init:", err)
		return
	}
	for _, r := range e.instances {
		r.container.SuspendOutput()
		defer r.container.ContinueOutput(e.handoff)
	}
	status, ping := e.notifier.HibernationState()
	e.handoff.Update(func(st *handoff.State) {
		st.Hibernation = handoff.Hibernation{Since: clock.Boot(), Wake: left.Wake, Idle: s.idleAfter, NotifyStatus: status, Probes: left.Probes}
		for i := range st.Running {
			if r := e.instances[st.Running[i].Name]; r != nil {
				st.Running[i].Streams = r.container.SaveStreams(e.handoff)
			}
		}
	})
	s.releaseStops()
	if len(e.events) > 0 || e.handoff.Failed() {
		signal.Notify(s.stops, stopSignals...)
		return
	}
	e.handoff.PodInit.Hibernate(left.Wake, ping, len(left.Probes))
	os.Exit(0)
}

// discardPreparedIfIdle reports whether the engine is idle, and if so discards all prepared containers: the
// pod keeps none while its supervisor hibernates.
func (e *engine) discardPreparedIfIdle(quiet time.Duration) bool {
	e.mu.Lock()
	idle := e.isIdle(quiet)
	e.mu.Unlock()
	if idle {
		e.discardPrepared()
	}
	return idle
}

// isIdle reports whether nothing is under way and no container has logged within the time quiet. The caller
// holds mu.
func (e *engine) isIdle(quiet time.Duration) bool {
	if e.busy > 0 || e.prepared.Busy > 0 || len(e.exited) > 0 || len(e.events) > 0 || e.sandbox == nil {
		return false
	}
	for _, r := range e.instances {
		if r.container == nil || r.container.Log.WroteWithin(quiet) {
			return false
		}
	}
	return true
}
