package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestProbeCounts checks that each result of each probe has a counter of its own, and that counts continue with the next
// supervisor.
func TestProbeCounts(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	plan := &pod.Plan{InitContainers: []pod.Container{{Name: "sidecar"}}, Containers: []pod.Container{{Name: "main"}, {Name: "other"}}}
	if err := p.Create(plan, nil); err != nil {
		t.Fatal(err)
	}
	if counts, err := p.ProbeCounts(plan); err != nil || len(counts) > 0 {
		t.Errorf("before the first result: %v, %v", counts, err)
	}
	var want []ProbeCount
	n := uint64(0)
	for _, container := range []string{"sidecar", "main", "other"} {
		for _, kind := range []string{"startup", "liveness", "readiness"} {
			want = append(want, ProbeCount{container, kind, n, n + 1})
			n += 2
		}
	}
	for range 2 {
		for _, c := range want {
			f, err := p.OpenProbeCounters(plan)
			if err != nil {
				t.Fatal(err)
			}
			counter := ProbeCounter(plan, c.Container, c.Kind)
			for range c.Successful {
				err = errors.Join(err, CountProbe(f, counter))
			}
			for range c.Failed {
				err = errors.Join(err, CountProbe(f, counter+1))
			}
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range want {
		want[i].Successful, want[i].Failed = 2*want[i].Successful, 2*want[i].Failed
	}
	if got, err := p.ProbeCounts(plan); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
