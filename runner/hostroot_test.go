package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// The whole host as a volume is what the host has: nothing of what podrun has mounted for
// the pod is in it, neither its processes' /proc nor another container's files and Secrets.
func TestTheHostsRootHasNothingOfThePod(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a, b := shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")
	a.Mounts = []pod.Mount{{Volume: "root", Path: "/host"}, {Volume: "proc", Path: "/hostproc"}}
	b.Mounts = []pod.Mount{{Volume: "secret", Path: "/secret"}}
	plan := newPlan(nil, []pod.Container{b, a})
	plan.Volumes = []pod.Volume{
		{Name: "root", Kind: pod.HostPath, Path: "/"},
		{Name: "proc", Kind: pod.HostPath, Path: "/proc", PathType: "Directory"},
		{Name: "secret", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Mode: 0o444, Items: []pod.FileItem{{Path: "a", Text: "hidden", Mode: 0o444}}}}},
	}
	w := startWhole(t, plan)
	w.until(running)
	code, out := w.ask("a", "sh", "-c", "cat /proc/self/mountinfo; cat /host/proc/1/comm /hostproc/1/comm; ls /host/etc >/dev/null && echo host")
	if code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], "/host/") && strings.Contains(f[4], w.place.RuntimeDir()) {
			t.Errorf("%s is seen", f[4])
		}
	}
	comm, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		t.Fatal(err)
	}
	if want := string(comm) + string(comm) + "host\n"; !strings.HasSuffix(out, want) {
		t.Errorf("the first process of the host is not %q: %s", comm, out[max(0, len(out)-200):])
	}
}
