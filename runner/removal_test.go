package runner

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// The next container does not wait until what the ended one leaves is removed; the pod's
// end does.
func TestNextContainerDoesNotWaitForRemoval(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	one, two := shell(l, "one", "cat /v/one"), shell(l, "two", "cat /v/two")
	plan := withFifos(t, newPlan([]pod.Container{one, two}, []pod.Container{shell(l, "app", "exit 0")}), "one", "two")
	p := start(t, plan)
	w := wholePod{t: t, place: p.place}
	p.until("at its first init container", func(st pod.Status) bool { return st.InitContainers[1].State.Running != nil })
	removing, held := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(held) })
	defer goOn()
	p.engine.mu.Lock()
	first := p.engine.runs["one"].container
	first.cleanup.Push("take long", func() error {
		close(removing)
		<-held
		return nil
	})
	p.engine.mu.Unlock()
	w.release("one")
	<-removing
	p.until("at its second init container", func(st pod.Status) bool { return st.InitContainers[2].State.Running != nil })
	if _, err := os.Stat(first.rootfs(p.engine.sandbox)); err != nil {
		t.Error("it is removed already:", err)
	}
	// So would a supervisor find it that follows one which is killed now.
	if x := (&adoption{engine: p.engine}).remnant(p.engine.sandbox, &one, 0); x.ct == nil {
		t.Error("what libcontainer knows of it, its cgroup above all, would be left")
	}
	w.release("two")
	p.until("at its app", func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil })
	goOn()
	p.ended()
	if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}

// A removal leaves the processors to what is being started, unless somebody waits for it, or for
// a later one of the same container.
func TestRemovalsWaitForStarts(t *testing.T) {
	e := &engine{plan: newPlan(nil, nil), estate: &estate{}, removing: map[string]*removal{}}
	var order []string
	remove := func(name string, attempt int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.removeBeside(instance{name, attempt}, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			order = append(order, fmt.Sprintf("%s-%d while %d", name, attempt, e.stirring))
		})
	}
	stir := func(n int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stir(n)
	}
	stir(1)
	stir(1)
	remove("a", 0)
	remove("b", 0)
	remove("b", 1)
	e.awaitRemoval("b")
	stir(-1)
	e.mu.Lock()
	a := e.removing["a"]
	e.mu.Unlock()
	stir(-1)
	<-a.done
	remove("c", 0)
	e.awaitRemoval("c")
	e.mu.Lock()
	defer e.mu.Unlock()
	if want := []string{"b-0 while 2", "b-1 while 2", "a-0 while 0", "c-0 while 0"}; !slices.Equal(order, want) {
		t.Errorf("removed %v, want %v", order, want)
	}
	if len(e.removing) > 0 || e.calm != nil || e.busy != 0 {
		t.Errorf("%d removals are under way, %d things to do", len(e.removing), e.busy)
	}
}

// What becomes of a run whose end is on record is known to a supervisor that follows, until
// nothing is left of it.
func TestEndedRunsRemainUntilTheyAreRemoved(t *testing.T) {
	e := &estate{state: state{Runs: []savedRun{{Name: "a", Attempt: 2}, {Name: "b"}}}}
	known := lifecycle.Observed{Containers: map[string]*lifecycle.Container{
		"a": {State: lifecycle.RunEnded, Attempt: 2}, "b": {State: lifecycle.RunRunning},
	}}
	if err := e.observe(&known); err != nil {
		t.Fatal(err)
	}
	if got := e.state.Remains; !slices.Equal(got, []instance{{"a", 2}}) || len(e.state.Runs) != 1 {
		t.Fatalf("remains %v, runs %v", got, e.state.Runs)
	}
	if e.removed(instance{"a", 2}); len(e.state.Remains) > 0 {
		t.Errorf("%v remains", e.state.Remains)
	}
}
