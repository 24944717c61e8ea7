package sandbox

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func TestRaisedOOMScoresAreSaidOnce(t *testing.T) {
	plan := &pod.Plan{
		InitContainers: []pod.Container{{Name: "i", OOMScoreAdj: -997}},
		Containers:     []pod.Container{{Name: "a", OOMScoreAdj: 100}, {Name: "b", OOMScoreAdj: 1000}},
	}
	for floor, want := range map[int]string{
		-1000: "",
		-997:  "",
		0:     "oom_score_adj is 0 instead of -997 (containers i): only root can give less than it has itself",
		200:   "oom_score_adj is 200 instead of -997 (containers i, a): only root can give less than it has itself",
	} {
		if got := oomScoreWarning(plan, floor); got != want {
			t.Errorf("floor %d: %q", floor, got)
		}
	}
}

// The probe restores the process's own score.
func TestOOMScoreFloorIsProbedWithoutATrace(t *testing.T) {
	before := OwnOOMScore()
	if floor := OOMScoreFloor(); floor > before || OwnOOMScore() != before {
		t.Errorf("the floor is %d; before %d, now %d", floor, before, OwnOOMScore())
	}
}
