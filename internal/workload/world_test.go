package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// world carries decisions out with simulated pods.
type world struct {
	spec   Spec
	state  State
	now    time.Time
	pods   []Pod
	jobs   []JobRun
	made   int
	ready  time.Duration // delay until a pod of a good version is ready
	bad    map[string]bool
	linger bool // pods that are stopped do not end
	refuse string
	last   Decision
	log    func(format string, args ...any)
	seen   func(Decision) // checks every decision before it is carried out
	gone   bool
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld() *world {
	return &world{now: start, ready: time.Second, bad: map[string]bool{}, log: func(string, ...any) {}, seen: func(Decision) {}}
}

// settle decides until nothing is due.
func (w *world) settle() error {
	if w.spec.Kind == "" {
		return nil // the scenario has not begun
	}
	for range 1000 {
		for i := range w.pods { // time passes for the pods too
			p := &w.pods[i]
			if moment := p.Created.Add(w.ready); p.active() && !p.Ready && p.Alive && !w.bad[p.Revision] && !w.now.Before(moment) {
				p.Ready, p.ReadyAt, p.Phase = true, moment, pod.Running
			}
		}
		d := Decide(&w.spec, w.state, w.pods, w.jobs, w.now)
		w.seen(d)
		w.last, w.state = d, d.State
		if len(d.Make)+len(d.Remove)+len(d.RemoveJobs) == 0 && d.MakeJob == nil {
			w.gone = w.gone || d.Delete
			return nil
		}
		w.act(d)
	}
	return fmt.Errorf("decisions do not end: %+v", w.last)
}

func (w *world) act(d Decision) {
	for _, name := range d.Remove {
		i := slices.IndexFunc(w.pods, func(p Pod) bool { return p.Name == name })
		switch p := &w.pods[i]; {
		case w.linger && p.Alive && !p.Stopping:
			w.log("stop %s", name)
			p.Stopping, p.Ready = true, false
		default:
			w.log("remove %s", name)
			w.pods = slices.Delete(w.pods, i, i+1)
		}
	}
	for _, m := range d.Make {
		if w.refuse != "" {
			w.state.RecordCreateFailure(w.refuse, w.now)
			w.log("refused")
			break
		}
		w.state.RecordCreated()
		w.made++
		name := m.Name
		if name == "" {
			name = fmt.Sprintf("%s-%s-%d", w.spec.Name, m.Revision, w.made)
		}
		w.log("make %s", name)
		w.pods = append(w.pods, Pod{Name: name, UID: fmt.Sprint("uid", w.made), Revision: m.Revision, Index: m.Index, Created: w.now, Alive: true, Phase: pod.Pending})
	}
	for _, name := range d.RemoveJobs {
		w.log("remove job %s", name)
		w.jobs = slices.DeleteFunc(w.jobs, func(j JobRun) bool { return j.Name == name })
	}
	if r := d.MakeJob; r != nil {
		w.log("make job %s for %s", r.Name, r.Scheduled.Format(time.TimeOnly))
		w.jobs = append(w.jobs, JobRun{Name: r.Name, Created: w.now})
	}
}

// pass advances the time, with a decision at every wake and whenever a pod becomes ready.
func (w *world) pass(d time.Duration) error {
	end := w.now.Add(d)
	for {
		next := end
		for _, p := range w.pods {
			if moment := p.Created.Add(w.ready); p.active() && !p.Ready && !w.bad[p.Revision] && moment.After(w.now) && moment.Before(next) {
				next = moment
			}
		}
		if wake := w.last.Wake; wake.After(w.now) && wake.Before(next) {
			next = wake
		}
		w.now = next
		w.log("at %v", w.now.Sub(start))
		if err := w.settle(); err != nil || !w.now.Before(end) {
			return err
		}
	}
}

// ended ends a pod by itself.
func (w *world) ended(name string, code int) error {
	i := slices.IndexFunc(w.pods, func(p Pod) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no pod %s", name)
	}
	p := &w.pods[i]
	p.Alive, p.Ready, p.Phase, p.Ended, p.ExitCode = false, false, pod.Succeeded, w.now, code
	if code != 0 {
		p.Phase = pod.Failed
	}
	p.Ends = []End{{"c", code}}
	return nil
}

func (w *world) status() string {
	var b strings.Builder
	c := w.last.Counts
	fmt.Fprintf(&b, "replicas %d, updated %d, ready %d, available %d", c.Replicas, c.Updated, c.Ready, c.Available)
	for _, is := range []struct {
		is   bool
		word string
	}{{w.last.Settled, "settled"}, {w.last.Done, "done"}, {w.gone, "gone"}} {
		if is.is {
			b.WriteString("; " + is.word)
		}
	}
	if j := w.state.Job; !j.Started.IsZero() {
		fmt.Fprintf(&b, "; succeeded %d, failed %d, indexes %v", j.Succeeded, j.Failed, j.Indexes)
	}
	if j := w.state.Job; len(j.FailedIndexes) > 0 {
		fmt.Fprintf(&b, ", failed indexes %v", j.FailedIndexes)
	}
	for _, c := range w.state.Conditions {
		fmt.Fprintf(&b, "; %s=%s %s", c.Type, c.Status, c.Reason)
	}
	for _, e := range w.state.Events.Events {
		fmt.Fprintf(&b, "; %s %s x%d: %s", e.Type, e.Reason, e.Count, e.Message)
	}
	return b.String()
}
