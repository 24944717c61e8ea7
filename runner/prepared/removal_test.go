package prepared

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/podrun/podrun/runner/handoff"
)

// A removal waits for containers that are being started, unless another operation waits for it, or for a
// later removal of the same container.
func TestRemovalsWaitForStarts(t *testing.T) {
	e := New(new(sync.Mutex), &handoff.Record{})
	var order []string
	remove := func(name string, attempt int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.RemoveInBackground(handoff.Instance{Name: name, Attempt: attempt}, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			order = append(order, fmt.Sprintf("%s-%d while %d", name, attempt, e.starting))
		})
	}
	stir := func(n int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.AddStarting(n)
	}
	stir(1)
	stir(1)
	remove("a", 0)
	remove("b", 0)
	remove("b", 1)
	e.AwaitRemoval("b")
	stir(-1)
	e.mu.Lock()
	a := e.removing["a"]
	e.mu.Unlock()
	stir(-1)
	<-a.done
	remove("c", 0)
	e.AwaitRemoval("c")
	e.mu.Lock()
	defer e.mu.Unlock()
	if want := []string{"b-0 while 2", "b-1 while 2", "a-0 while 0", "c-0 while 0"}; !slices.Equal(order, want) {
		t.Errorf("removed %v, want %v", order, want)
	}
	if len(e.removing) > 0 || e.allStarted != nil || e.Busy != 0 {
		t.Errorf("%d removals are under way, %d things to do", len(e.removing), e.Busy)
	}
}
