package runner

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
)

// manyVolumes is how many volumes of mixed kinds a start must take in its stride.
const manyVolumes = 50

// Fifty volumes of mixed kinds are all there. What they add to the start of a pod is
// logged (-v), in time and in this process' time of processors: to be at most 20 ms on a
// quiet machine.
func TestFiftyVolumes(t *testing.T) {
	l := layer(t)
	all := allVolumes(t, l, t.TempDir())
	names := []string{"emptyDir", "memory", "ephemeral", "claim", "hostPath", "configMap", "secret", "pod", "image", "configMap", "secret"}
	began := func(n int) (took, busy time.Duration) {
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
		at, used := time.Now(), processorTime(t)
		p.begin()
		p.running()
		took, busy = time.Since(at), processorTime(t)-used
		if _, got := p.exec("a", "sh", "-c", "grep -c ' /v/' /proc/self/mountinfo"); got != fmt.Sprintln(n) {
			t.Errorf("the container has %q mounts below /v, want %d", got, n)
		}
		p.stop(0)
		return took, busy
	}
	without, busyWithout := began(0)
	with, busyWith := began(manyVolumes)
	t.Logf("%v without, %v with %d volumes; %v and %v of processors", without, with, manyVolumes, busyWithout, busyWith)
}

// processorTime is what this process, the supervisor of its pods, has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
