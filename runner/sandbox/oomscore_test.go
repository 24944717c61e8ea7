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
		0:     "oom_score_adj is 0 instead of -997 (containers i): only root can give less",
		200:   "oom_score_adj is 200 instead of -997 (containers i, a): only root can give less",
	} {
		if got := oomScoreWarning(plan, floor); got != want {
			t.Errorf("floor %d: %q", floor, got)
		}
	}
}

// A process whose own score is above the floor, as in a unit of a user, finds the floor and keeps its score.
func TestFindOOMScoreFloor(t *testing.T) {
	before := OwnOOMScore()
	score := before + 100
	if err := writeOOMScore(score); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writeOOMScore(before) })
	floor := findOOMScoreFloor()
	if now := OwnOOMScore(); now != score {
		t.Errorf("the probe changed the score from %d to %d", score, now)
	}
	if err := writeOOMScore(floor); err != nil {
		t.Errorf("the floor %d cannot be set: %v", floor, err)
	}
	if floor > minOOMScore && writeOOMScore(floor-1) == nil {
		t.Errorf("%d can be set, below the floor %d", floor-1, floor)
	}
}
