package runner

import (
	"reflect"
	"runtime"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// executor carries out actions. Their results arrive as events.
type executor interface {
	Save(*lifecycle.Observed) // saves what is observed, before the next actions
	Do(lifecycle.Action)      // must not block
	Events() <-chan lifecycle.Event
}

// loop runs one pod to its end.
type loop struct {
	plan         *pod.Plan
	executor     executor
	now          func() lifecycle.Now
	publish      func(*pod.Status)   // called with every status that differs from the last one
	recordEvents func(*pod.EventLog) // optional; called with every event log that differs from the last one
	observed     lifecycle.Observed
	last         *pod.Status
	recordedSeq  int64 // Seq of the last event log that was recorded

	dirty         bool // something has happened since the last Save
	unsavedProbes bool // counts of probes have changed since the last Save; they are saved before hibernation
	onlyProbes    bool // this round has applied an event that changed only counts of probes; others set dirty

	// onIdle is optional. It is called when for quiet() nothing has happened apart from successes of steady
	// probes, with what is left to do. It may end the process.
	onIdle    func(lifecycle.Delegation)
	quiet     func() time.Duration
	delegable func(*pod.Container, lifecycle.ProbeKind) bool // optional; see lifecycle.Delegate

	activeAt time.Duration // CLOCK_BOOTTIME of the last round with more than successes of steady probes

	// prepare is optional. It is called with the starts that are likely next.
	prepare func(lifecycle.Preparation)

	// replan is optional. It returns the new Plan after a Replanned event.
	replan func() *pod.Plan

	// heartbeat fires when a watchdog message is due; ping sends it.
	heartbeat <-chan struct{}
	ping      func()

	statusChanged <-chan struct{} // a part of the status that publish adds has changed
}

// run decides, acts and waits until nothing is left to do. It returns the final status.
func (l *loop) run() *pod.Status {
	for {
		now := l.now()
		d := lifecycle.Decide(l.plan, &l.observed, now)
		for _, a := range d.Actions {
			// The intent is applied before the action: otherwise the next round would decide the same start
			// again.
			l.applyEvent(lifecycle.Event{At: now, Kind: lifecycle.Issued, Action: &a})
		}
		changed := l.last == nil || l.dirty || !l.onlyProbes || d.Done
		if changed {
			l.saveObserved()
		}
		for _, a := range d.Actions {
			l.executor.Do(a)
		}
		prepareAt := time.Duration(0)
		if !d.Done {
			prepareAt = l.prepareNext(now)
		}
		l.publishChanges(changed, now)
		if d.Done {
			return l.last
		}
		if changed {
			l.activeAt = now.Boot
		}
		l.onlyProbes = false
		l.wait(d.Wake, prepareAt, now.Boot)
	}
}

// publishChanges publishes the status (if changed) or only the events, after other goroutines have had a
// chance to run: actions come first. Events are written before the status, so that a reader of the status
// finds the events that led to it.
func (l *loop) publishChanges(changed bool, now lifecycle.Now) {
	seq := l.observed.Events.Seq
	newEvents := l.recordEvents != nil && seq != l.recordedSeq
	if !changed && !newEvents {
		return
	}
	runtime.Gosched()
	if newEvents {
		l.recordedSeq = seq
		l.recordEvents(&l.observed.Events)
	}
	if changed {
		l.publishStatus(now)
	}
}

// prepareNext calls prepare with the next starts and returns when to look again, or 0.
func (l *loop) prepareNext(now lifecycle.Now) time.Duration {
	if l.prepare == nil {
		return 0
	}
	p := lifecycle.Prepare(l.plan, &l.observed, now)
	l.prepare(p)
	return p.Wake
}

// earliest returns the earlier of two times, of which 0 is none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// idle calls onIdle if nothing is under way apart from steady probes, and no decision is due within
// minHibernation. Otherwise it returns false: an event or the timer ends the wait.
func (l *loop) idle(prepareAt time.Duration) bool {
	now := l.now()
	left, ok := lifecycle.Delegate(l.plan, &l.observed, now, l.delegable)
	left.Wake = earliest(left.Wake, prepareAt)
	if !ok || left.Wake > 0 && left.Wake-now.Boot < minHibernation {
		return false
	}
	if l.unsavedProbes {
		l.saveObserved() // the next supervisor continues the counts
	}
	l.onIdle(left)
	return true
}

// wait waits for an event and applies all that are pending, or returns at the time of the next decision or
// preparation, or after onIdle.
func (l *loop) wait(wake, prepareAt, now time.Duration) {
	var timer <-chan time.Time
	if wake = earliest(wake, prepareAt); wake > 0 {
		t := time.NewTimer(max(wake-now, 0))
		defer t.Stop()
		timer = t.C
	}
	var quiet <-chan time.Time
	if l.onIdle != nil {
		t := time.NewTimer(max(l.activeAt+l.quiet()-now, 0))
		defer t.Stop()
		quiet = t.C
	}
	for waiting := true; waiting; {
		select {
		case <-l.heartbeat:
			l.ping()
			continue
		case <-l.statusChanged:
			l.publish(l.last)
			continue
		case e := <-l.executor.Events():
			l.handle(e)
		case <-timer:
			return
		case <-quiet:
			if !l.idle(prepareAt) {
				continue
			}
			return
		}
		waiting = false
	}
	for {
		select {
		case e := <-l.executor.Events():
			l.handle(e)
		default:
			return
		}
	}
}

func (l *loop) handle(e lifecycle.Event) {
	if e.Kind == lifecycle.Replanned && l.replan != nil {
		l.plan = l.replan()
	}
	l.applyEvent(e)
}

func (l *loop) applyEvent(e lifecycle.Event) {
	if l.observed.Apply(l.plan, e) {
		l.dirty = true
	} else {
		l.unsavedProbes, l.onlyProbes = true, true
	}
}

// saveObserved records what is observed.
func (l *loop) saveObserved() {
	l.executor.Save(&l.observed)
	l.dirty, l.unsavedProbes = false, false
}

// publishStatus publishes the status if it has changed.
func (l *loop) publishStatus(now lifecycle.Now) {
	if st := lifecycle.Status(l.plan, &l.observed, now); l.last == nil || !reflect.DeepEqual(*l.last, st) {
		l.last = &st
		l.publish(&st)
	}
}
