package runner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/podrun/podrun/pod"
)

// manyVolumes is how many volumes of mixed kinds a start must take in its stride.
const manyVolumes = 50

// Fifty volumes of mixed kinds, each mounted, add at most 20 ms to the start of a pod. That
// is for a quiet machine, where a start without any takes as long: on others they may add
// as much again. The best of some rounds counts.
func TestFiftyVolumesAreQuick(t *testing.T) {
	const rounds, bar = 5, 20 * time.Millisecond
	l := layer(t)
	dir := t.TempDir()
	all := allVolumes(t, l, dir)
	names := []string{"emptyDir", "memory", "ephemeral", "claim", "hostPath", "configMap", "secret", "pod", "image", "configMap", "secret"}
	began := func(n int) time.Duration {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
		for i := range n {
			v := all[names[i%len(names)]]
			v.Name = fmt.Sprint("v", i)
			plan.Volumes = append(plan.Volumes, v)
			m := pod.Mount{Volume: v.Name, Path: fmt.Sprintf("/v/%d", i), ReadOnly: i%2 == 0}
			if v.Kind == pod.EmptyDir {
				m.SubPath = "part"
			}
			plan.Containers[0].Mounts = append(plan.Containers[0].Mounts, m)
		}
		p := prepare(t, plan)
		putObjects(p)
		at := time.Now()
		p.begin()
		p.running()
		took := time.Since(at)
		p.stop(0)
		return took
	}
	var without, with []time.Duration
	for range rounds {
		without, with = append(without, began(0)), append(with, began(manyVolumes))
	}
	more := slices.Min(with) - slices.Min(without)
	t.Logf("%v without, %v with %d volumes", slices.Min(without), slices.Min(with), manyVolumes)
	if more > bar+slices.Min(without) {
		t.Errorf("%d volumes add %v to the start, want at most %v", manyVolumes, more, bar+slices.Min(without))
	}
}
