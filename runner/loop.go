package runner

import (
	"reflect"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// kernel carries actions out. What comes of them arrives as events.
type kernel interface {
	Record(*lifecycle.Observed) // what is known now, before what is done next
	Do(lifecycle.Action)        // must not block
	Events() <-chan lifecycle.Event
}

// loop drives one pod to its end.
type loop struct {
	plan    *pod.Plan
	kernel  kernel
	now     func() lifecycle.Now
	publish func(*pod.Status)   // called with every status that differs from the last
	record  func(*pod.EventLog) // if there is one: called with every event log that differs from the last
	observe lifecycle.Observed
	last    *pod.Status
	events  int64 // of the log that was recorded last

	recorded      time.Duration // when what is known was put on record last: CLOCK_BOOTTIME
	probed, other bool          // since then probes were asked or have answered; anything else has happened

	// idle, if there is one, is called when nothing has happened for quiet(), with
	// the time of the next decision (CLOCK_BOOTTIME; 0: none).
	idle  func(observed *lifecycle.Observed, wake time.Duration)
	quiet func() time.Duration

	// replan, if there is one, gives the plan that is another now.
	replan func() *pod.Plan

	// alive is called whenever beat asks for a sign of life.
	beat  <-chan struct{}
	alive func()

	again <-chan struct{} // what publish adds to the status has changed
}

// run decides, acts and waits until nothing is left to do, and returns the final
// status.
func (l *loop) run() *pod.Status {
	for {
		now := l.now()
		d := lifecycle.Decide(l.plan, &l.observe, now)
		for _, a := range d.Actions {
			// The intent is folded before the act: otherwise the next round would
			// decide the same start again.
			l.observe.Apply(l.plan, lifecycle.Event{At: now, Kind: lifecycle.Issued, Action: &a})
		}
		st := lifecycle.Status(l.plan, &l.observe, now)
		if !l.routine(d.Actions, &st, now.Boot) {
			l.remember(now.Boot)
		}
		for _, a := range d.Actions {
			l.kernel.Do(a)
		}
		// Who sees the status finds what led to it.
		if n := l.observe.Events.Seq; l.record != nil && n != l.events {
			l.events = n
			l.record(&l.observe.Events)
		}
		if l.last == nil || !reflect.DeepEqual(*l.last, st) {
			l.last = &st
			l.publish(&st)
		}
		if d.Done {
			return l.last
		}
		l.wait(d.Wake, now.Boot)
	}
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
	if l.idle != nil && (wake == 0 || wake-now >= nap) {
		t := time.NewTimer(l.quiet())
		defer t.Stop()
		quiet = t.C
	}
	for waiting := true; waiting; {
		select {
		case <-l.beat:
			l.alive()
			continue
		case <-l.again:
			l.publish(l.last)
			continue
		case e := <-l.kernel.Events():
			l.fold(e)
		case <-timer:
			return
		case <-quiet:
			if l.probed {
				l.remember(now)
			}
			l.idle(&l.observe, wake)
			return
		}
		waiting = false
	}
	for {
		select {
		case e := <-l.kernel.Events():
			l.fold(e)
		default:
			return
		}
	}
}

func (l *loop) fold(e lifecycle.Event) {
	if e.Kind == lifecycle.Replanned && l.replan != nil {
		l.plan = l.replan()
	}
	l.probed = l.probed || e.Kind == lifecycle.Probed
	l.other = l.other || e.Kind != lifecycle.Probed
	l.observe.Apply(l.plan, e)
}

// forgettable is how old what is on record of probes may be. A supervisor that follows one
// that was killed asks again.
const forgettable = time.Second

// routine says whether nothing is to be put on record: probes have told what was known, or
// are to be asked again.
func (l *loop) routine(actions []lifecycle.Action, st *pod.Status, now time.Duration) bool {
	for _, a := range actions {
		l.probed = l.probed || a.Kind == lifecycle.RunProbe
		l.other = l.other || a.Kind != lifecycle.RunProbe
	}
	return l.probed && !l.other && now-l.recorded < forgettable && l.observe.Events.Seq == l.events && l.last != nil && reflect.DeepEqual(*l.last, *st)
}

// remember has what is known put on record.
func (l *loop) remember(now time.Duration) {
	l.kernel.Record(&l.observe)
	l.recorded, l.probed, l.other = now, false, false
}
