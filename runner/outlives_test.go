package runner

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// TestStatusOutlivesTheSandbox: an ended pod has its addresses and the users of its
// containers, of which a later supervisor knows only what was left to it.
func TestStatusOutlivesTheSandbox(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "until test -e /tmp/end; do usleep 10000; done")
	c.User, c.SupplementalGroups = "1000:1001", []uint32{2000}
	w := startWhole(t, newPlan(nil, []pod.Container{c}))
	w.until(running)
	before, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	_, out := w.ask("a", "/bin/grep", "-E", "^(Uid|Gid|Groups):", "/proc/1/status")
	if got := strings.Join(strings.Fields(out), " "); got != "Uid: 1000 1000 1000 1000 Gid: 1001 1001 1001 1001 Groups: 1001 2000" {
		t.Errorf("its process has %q", got)
	}
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, out := w.ask("a", "/bin/touch", "/tmp/end"); code != 0 {
		t.Fatalf("touch: %d, %s", code, out)
	}
	w.untilDead()
	after, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	if len(before.PodIPs) != 2 || !slices.Equal(before.PodIPs, after.PodIPs) || !slices.Equal(before.HostIPs, after.HostIPs) {
		t.Errorf("addresses %v and %v became %v and %v", before.PodIPs, before.HostIPs, after.PodIPs, after.HostIPs)
	}
	for _, st := range []*pod.Status{before, after} {
		if u := st.Containers[0].User; u == nil || u.UID != 1000 || u.GID != 1001 || !slices.Equal(u.Groups, []int{1001, 2000}) {
			t.Errorf("%s: the user is %+v", st.Phase, u)
		}
	}
}

// untilDead waits until no process of the pod is left.
func (w wholePod) untilDead() {
	w.t.Helper()
	lock, err := w.place.WaitLock()
	if err != nil {
		w.t.Fatal(err)
	}
	lock.Close()
}
