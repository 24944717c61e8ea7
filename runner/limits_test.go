package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// On a host with a delegated cgroup the limits are the kernel's: in the pod's cgroup,
// in its containers', after the supervisor has dozed and after a restart.
func TestLimitsOnARealHost(t *testing.T) {
	testenv.NeedVM(t, func() error {
		_, err := cgroups.Delegated()
		return err
	})
	testenv.NoLeaks(t)
	l := layer(t)
	hog := shell(l, "hog", "read x < /v/fifo; tail /dev/zero")
	hog.Resources = pod.Resources{CPULimit: 400, MemoryLimit: 20 << 20, MemoryRequest: 20 << 20}
	hog.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	fine := shell(l, "fine", "trap 'exit 0' TERM; while :; do sleep 1; done")
	fine.Resources = pod.Resources{MemoryLimit: 30 << 20, MemoryRequest: 30 << 20}
	plan := newPlan([]pod.Container{shell(l, "i", "mkfifo /v/fifo")}, []pod.Container{hog, fine})
	plan.InitContainers[0].Mounts = hog.Mounts
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.RestartPolicy, plan.GraceSeconds = pod.RestartAlways, 1
	plan.Resources = pod.Resources{CPULimit: 400, MemoryLimit: 50 << 20, MemoryRequest: 50 << 20}
	w, keeper := drowsy(t, plan)
	var group string
	w.until(func(st *pod.Status) bool { group = st.Cgroup; return true })
	check := func(when string) {
		t.Helper()
		for file, want := range map[string]string{
			"memory.max": "52428800", "cpu.max": "40000 100000", "pids.max": "2048",
			"hog/memory.max": "20971520", "hog/cpu.max": "40000 100000", "hog/memory.oom.group": "1", "fine/memory.max": "31457280",
		} {
			if b, err := os.ReadFile(filepath.Join(group, file)); err != nil || strings.TrimSpace(string(b)) != want {
				t.Errorf("%s: %s is %q, want %q: %v", when, file, b, want, err)
			}
		}
		if code, out := w.ask("fine", "/bin/sh", "-c", "cat /proc/self/cgroup /sys/fs/cgroup/memory.max; ! touch /sys/fs/cgroup/x"); code != 0 || !strings.HasPrefix(out, "0::/\n31457280\n") {
			t.Errorf("%s: the container sees %d %q", when, code, out)
		}
	}
	check("after a doze")
	w.asleep(keeper)
	fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fifo.Close()
	w.until(func(st *pod.Status) bool {
		c := st.Containers[0]
		if end := c.LastState.Terminated; end != nil && (end.Reason != "OOMKilled" || end.ExitCode != 137) {
			t.Errorf("the hog ended with %+v", end)
		}
		if st.Containers[1].RestartCount > 0 {
			t.Errorf("its neighbour was restarted: %+v", st.Containers[1])
		}
		return c.RestartCount > 0 && c.State.Running != nil
	})
	check("after a restart")
	w.remove()
	if _, err := os.Stat(group); !os.IsNotExist(err) {
		t.Errorf("the pod's cgroup is left: %v", err)
	}
}
