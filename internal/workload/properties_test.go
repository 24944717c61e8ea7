package workload

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/proptest"
)

func TestMain(m *testing.M) { proptest.Main(m, "2000") }

// TestProperties: whatever happens to pods, in any order, a workload never has more pods than
// allowed, never removes one that is required, and finally reaches the desired state.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		fields(rt, w)
		w.seen = func(d Decision) { w.holds(rt, d) }
		if err := w.settle(); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 25).Draw(rt, "events") {
			happen(rt, w)
			if err := w.settle(); err != nil {
				rt.Fatal(err)
			}
		}
		w.bad, w.refuse, w.linger, w.spec.Paused, w.spec.Job.Suspend = map[string]bool{}, "", false, false, false
		for i := range w.pods {
			if w.pods[i].Stopping {
				w.pods[i].Alive = false
			}
		}
		for range 60 {
			for i := range w.pods {
				if p := &w.pods[i]; w.spec.Kind == pod.KindJob && p.Ready && p.active() {
					_ = w.ended(p.Name, 0)
				}
			}
			if err := w.pass(time.Minute); err != nil {
				rt.Fatal(err)
			}
		}
		if !w.last.Settled {
			rt.Fatalf("after an hour without trouble it is not settled: %s\n%+v\n%+v", w.status(), w.spec, w.pods)
		}
	})
}

func fields(rt *rapid.T, w *world) {
	draw := func(key string, values ...string) {
		if err := w.set(key, rapid.SampledFrom(values).Draw(rt, key)); err != nil {
			rt.Fatal(err)
		}
	}
	draw("kind", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
	switch w.spec.Kind {
	case pod.KindDeployment:
		draw("strategy", "RollingUpdate", "Recreate")
		draw("surge", "1", "2", "3")
		draw("unavailable", "0", "1", "2")
		draw("deadline", "0s", "1m")
		draw("replicas", "0", "1", "2", "3", "5")
	case pod.KindReplicaSet:
		draw("replicas", "0", "1", "3")
	case pod.KindStatefulSet:
		draw("replicas", "0", "1", "3", "4")
		draw("partition", "0", "0", "1", "9")
		draw("parallel", "true", "false")
		draw("first", "0", "2")
		draw("unavailable", "0", "1", "2", "9")
	case pod.KindDaemonSet:
		draw("surge", "0", "1")
	case pod.KindJob:
		draw("parallelism", "1", "2", "4")
		draw("completions", "1", "2", "5")
		draw("indexed", "true", "false")
		draw("replaceFailed", "true", "false")
		draw("backoffLimit", "0", "1", "6")
		jobRules(rt, w, draw)
	}
	draw("minReady", "0s", "0s", "7s")
}

// jobRules draws the rules for a Job's end.
func jobRules(rt *rapid.T, w *world, draw func(key string, values ...string)) {
	rules := []string{"Ignore:1", "Count:2", "FailJob:3", "FailJob:c=2", "Ignore:DisruptionTarget"}
	if w.spec.Job.Indexed {
		if rapid.Bool().Draw(rt, "each index for itself") {
			draw("perIndex", "0", "1", "2")
			draw("maxFailed", "-1", "0", "1", "2")
			rules = append(rules, "FailIndex:2", "FailIndex:c=1")
		}
		for range rapid.IntRange(0, 2).Draw(rt, "rules of success") {
			draw("enough", "0:", "0:1", ":1", ":2")
		}
	}
	for range rapid.IntRange(0, 3).Draw(rt, "rules of failure") {
		draw("rule", rules...)
	}
}

// happen draws one event.
func happen(rt *rapid.T, w *world) {
	var victim *Pod
	if n := len(w.pods); n > 0 {
		victim = &w.pods[rapid.IntRange(0, n-1).Draw(rt, "victim")]
	}
	switch rapid.IntRange(0, 9).Draw(rt, "event") {
	case 0, 1, 2:
		if err := w.pass(time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds")) * time.Second); err != nil {
			rt.Fatal(err)
		}
	case 3:
		if victim != nil && !victim.Stopping && victim.Alive {
			if rapid.IntRange(0, 3).Draw(rt, "disrupted") == 0 {
				victim.Conditions = []FailureCondition{{"DisruptionTarget", "True"}}
			}
			_ = w.ended(victim.Name, rapid.IntRange(0, 3).Draw(rt, "code"))
		}
	case 4:
		if victim != nil {
			for i := range w.pods {
				if w.pods[i].Name == victim.Name {
					w.pods = append(w.pods[:i:i], w.pods[i+1:]...)
					break
				}
			}
		}
	case 5:
		if victim != nil && victim.Stopping {
			victim.Alive = false
		}
	case 6:
		if w.spec.Kind != pod.KindJob {
			w.spec.Revision = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "rev")
			w.spec.Generation++
		}
	case 7:
		w.linger = rapid.Bool().Draw(rt, "linger")
		if rapid.Bool().Draw(rt, "bad?") {
			w.bad["b"] = !w.bad["b"]
		}
	case 8:
		if w.spec.Kind == pod.KindDeployment || w.spec.Kind == pod.KindStatefulSet {
			n := rapid.IntRange(0, 5).Draw(rt, "replicas")
			w.spec.Replicas = n
			w.spec.Generation++
		}
	case 9:
		switch rapid.IntRange(0, 2).Draw(rt, "which") {
		case 0:
			w.refuse = rapid.SampledFrom([]string{"", "no image"}).Draw(rt, "refuse")
		case 1:
			w.spec.Paused = w.spec.Kind == pod.KindDeployment && !w.spec.Paused
		case 2:
			w.spec.Job.Suspend = w.spec.Kind == pod.KindJob && !w.spec.Job.Suspend
		}
	}
}

// holds checks one decision.
func (w *world) holds(rt *rapid.T, d Decision) {
	if !d.Wake.IsZero() && !d.Wake.After(w.now) {
		rt.Fatalf("the wake %v is not after now, %v", d.Wake, w.now)
	}
	if again := Decide(&w.spec, d.State, w.pods, w.jobs, w.now); !reflect.DeepEqual(again, d) {
		rt.Fatalf("asked again, it decides otherwise:\n%+v\n%+v", d, again)
	}
	removed := map[string]bool{}
	for _, name := range d.Remove {
		if removed[name] {
			rt.Fatalf("pod %s is removed twice", name)
		}
		removed[name] = true
	}
	w.bounds(rt, d, removed)
}

// bounds checks the number of pods before and after a decision.
func (w *world) bounds(rt *rapid.T, d Decision, removed map[string]bool) {
	active, available, alive, ordinals := 0, 0, 0, map[int]bool{}
	availableBefore := 0
	for i := range w.pods {
		p := &w.pods[i]
		ok, _ := p.available(w.spec.MinReady, w.now)
		if ok {
			availableBefore++
		}
		if p.Alive {
			alive++
		}
		if removed[p.Name] {
			continue
		}
		if p.active() {
			active++
		}
		if ok {
			available++
		}
		if p.active() || p.Alive {
			ordinals[p.Index] = true
		}
	}
	s, made := &w.spec, len(d.Make)
	switch s.Kind {
	case pod.KindDeployment:
		if s.Strategy == Rolling && made > 0 && active+made > s.Replicas+s.MaxSurge {
			rt.Fatalf("%d pods and %d more, though only %d are wanted", active, made, s.Replicas)
		}
		if s.Strategy == Rolling && !s.Paused && available < availableBefore && available < s.Replicas-s.MaxUnavailable {
			rt.Fatalf("%d of %d available pods are left, of %d", available, availableBefore, s.Replicas)
		}
	case pod.KindDaemonSet:
		if s.MaxSurge == 0 && made > 0 && alive-len(removed)+made > 1 {
			rt.Fatalf("%d pods live and %d more", alive, made)
		}
	case pod.KindJob:
		if made > 0 && active+made > s.Job.Parallelism {
			rt.Fatalf("%d pods and %d more, though only %d may run", active, made, s.Job.Parallelism)
		}
		w.jobHolds(rt, d, ordinals)
	case pod.KindStatefulSet:
		living := 0 // dead pods may be removed at any time
		for i := range w.pods {
			if w.pods[i].Alive && removed[w.pods[i].Name] {
				living++
			}
		}
		if most := max(s.MaxUnavailable, 1); !s.Parallel && (made > 1 || made > 0 && living > 0 || living > most) {
			rt.Fatalf("in order, yet at once %v and %v", d.Make, d.Remove)
		} else if lost, left := w.taken(removed); lost > 0 && left < s.Replicas-most {
			rt.Fatalf("%d available pods are taken away, %d of %d are left", lost, left, s.Replicas)
		}
		for _, m := range d.Make {
			if ordinals[m.Index] {
				rt.Fatalf("ordinal %d twice", m.Index)
			}
			if m.Name != s.Name+"-"+strconv.Itoa(m.Index) {
				rt.Fatal(fmt.Sprint("name ", m.Name))
			}
		}
	}
}

// taken counts the available pods with desired ordinals: removed ones and others.
func (w *world) taken(removed map[string]bool) (lost, left int) {
	for i := range w.pods {
		p := &w.pods[i]
		if ok, _ := p.available(w.spec.MinReady, w.now); !ok || p.Index < w.spec.FirstOrdinal || p.Index >= w.spec.FirstOrdinal+w.spec.Replicas {
			continue
		}
		if removed[p.Name] {
			lost++
		} else {
			left++
		}
	}
	return lost, left
}

// jobHolds: an index ends once, and a Job whose end is decided makes no more pods.
func (w *world) jobHolds(rt *rapid.T, d Decision, living map[int]bool) {
	s, j := &w.spec.Job, &d.State.Job
	for _, i := range j.FailedIndexes {
		if slices.Contains(j.Indexes, i) {
			rt.Fatalf("index %d has completed and failed", i)
		}
	}
	for _, m := range d.Make {
		if s.Indexed && s.ReplaceFailed && living[m.Index] {
			rt.Fatalf("index %d twice", m.Index)
		}
		if slices.Contains(j.Indexes, m.Index) || slices.Contains(j.FailedIndexes, m.Index) {
			rt.Fatalf("index %d is over, and begins again", m.Index)
		}
		if s.BackoffPerIndex >= 0 && m.Failures > s.BackoffPerIndex {
			rt.Fatalf("index %d begins after %d failures", m.Index, m.Failures)
		}
	}
	over, _ := d.State.Ended()
	tooMany := s.MaxFailedIndexes >= 0 && len(j.FailedIndexes) > s.MaxFailedIndexes
	if len(d.Make) > 0 && (over || j.Reason != "" || tooMany || s.BackoffPerIndex < 0 && j.Failed > s.BackoffLimit) {
		rt.Fatalf("the end is decided, %q, and yet %v", j.Reason, d.Make)
	}
}
