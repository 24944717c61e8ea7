package handoff

import (
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/lifecycle"
)

// A run whose exit is recorded stays in the state for the next supervisor until it is removed completely.
func TestEndedRunsRemainUntilTheyAreRemoved(t *testing.T) {
	e := &Record{state: State{Running: []RunningInstance{{Name: "a", Attempt: 2}, {Name: "b"}}}}
	known := lifecycle.Observed{Containers: map[string]*lifecycle.Container{
		"a": {State: lifecycle.RunEnded, Attempt: 2}, "b": {State: lifecycle.RunRunning},
	}}
	if err := e.SaveObserved(&known); err != nil {
		t.Fatal(err)
	}
	if got := e.state.Leftovers; !slices.Equal(got, []Instance{{"a", 2}}) || len(e.state.Running) != 1 {
		t.Fatalf("remains %v, runs %v", got, e.state.Running)
	}
	if e.ForgetInstance(Instance{"a", 2}); len(e.state.Leftovers) > 0 {
		t.Errorf("%v remains", e.state.Leftovers)
	}
}
