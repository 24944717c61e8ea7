package runner

import (
	"reflect"
	"runtime"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// executor carries actions out. What comes of them arrives as events.
type executor interface {
	Record(*lifecycle.Observed) // what is known now, before what is done next
	Do(lifecycle.Action)        // must not block
	Events() <-chan lifecycle.Event
}

// loop drives one pod to its end.
type loop struct {
	plan     *pod.Plan
	executor executor
	now      func() lifecycle.Now
	publish  func(*pod.Status)   // called with every status that differs from the last
	record   func(*pod.EventLog) // if there is one: called with every event log that differs from the last
	observed lifecycle.Observed
	last     *pod.Status
	events   int64 // of the log that was recorded last

	dirty      bool // something has happened since what is known was put on record
	probed     bool // probes have been asked since, or have answered as before: that alone is not worth it
	onlyProbes bool // in this round that was all

	// idle, if there is one, is called when nothing has happened for quiet(), with
	// the time of the next decision (CLOCK_BOOTTIME; 0: none).
	idle  func(observed *lifecycle.Observed, wake time.Duration)
	quiet func() time.Duration

	// prepare, if there is one, is called with what is likely to be started next.
	prepare func([]lifecycle.Action)

	// replan, if there is one, gives the plan that is another now.
	replan func() *pod.Plan

	// alive is called whenever beat asks for a sign of life.
	heartbeat <-chan struct{}
	ping      func()

	statusChanged <-chan struct{} // what publish adds to the status has changed
}

// run decides, acts and waits until nothing is left to do, and returns the final
// status.
func (l *loop) run() *pod.Status {
	for {
		now := l.now()
		d := lifecycle.Decide(l.plan, &l.observed, now)
		for _, a := range d.Actions {
			// The intent is folded before the act: otherwise the next round would
			// decide the same start again.
			l.apply(lifecycle.Event{At: now, Kind: lifecycle.Issued, Action: &a})
		}
		news := l.last == nil || l.dirty || !l.onlyProbes || d.Done
		if news {
			l.saveObserved()
		}
		for _, a := range d.Actions {
			l.executor.Do(a)
		}
		wake := d.Wake
		if !d.Done {
			wake = l.prepareNext(d.Wake, now)
		}
		l.publishChanges(news, now)
		if d.Done {
			return l.last
		}
		l.onlyProbes = false
		l.wait(wake, now.Boot)
	}
}

// publishChanges tells of what has happened, news or only events, after others had their turn: what is
// to be done comes first. Who sees the status finds what led to it.
func (l *loop) publishChanges(news bool, now lifecycle.Now) {
	seq := l.observed.Events.Seq
	noted := l.record != nil && seq != l.events
	if !news && !noted {
		return
	}
	runtime.Gosched()
	if noted {
		l.events = seq
		l.record(&l.observed.Events)
	}
	if news {
		l.publishStatus(now)
	}
}

// prepareNext has prepared what follows, and says when to look again; wake is when to decide.
func (l *loop) prepareNext(wake time.Duration, now lifecycle.Now) time.Duration {
	if l.prepare == nil {
		return wake
	}
	p := lifecycle.Prepare(l.plan, &l.observed, now)
	l.prepare(p.Starts)
	if wake == 0 || p.Wake > 0 && p.Wake < wake {
		return p.Wake
	}
	return wake
}

// wait folds the events there are, or returns at the time wake.
func (l *loop) wait(wake, now time.Duration) {
	var timer <-chan time.Time
	if wake > 0 {
		t := time.NewTimer(max(wake-now, 0))
		defer t.Stop()
		timer = t.C
	}
	var quiet <-chan time.Time
	if l.idle != nil && (wake == 0 || wake-now >= minHibernation) {
		t := time.NewTimer(l.quiet())
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
			if l.probed {
				l.saveObserved() // its successor goes on to count
			}
			l.idle(&l.observed, wake)
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
	l.apply(e)
}

func (l *loop) apply(e lifecycle.Event) {
	if l.observed.Apply(l.plan, e) {
		l.dirty = true
	} else {
		l.probed, l.onlyProbes = true, true
	}
}

// saveObserved has what is known put on record.
func (l *loop) saveObserved() {
	l.executor.Record(&l.observed)
	l.dirty, l.probed = false, false
}

// publishStatus publishes the status if it is another.
func (l *loop) publishStatus(now lifecycle.Now) {
	if st := lifecycle.Status(l.plan, &l.observed, now); l.last == nil || !reflect.DeepEqual(*l.last, st) {
		l.last = &st
		l.publish(&st)
	}
}
