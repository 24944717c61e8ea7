package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A container that writes without end to the files that it is given fills little, and
// finds its /etc/hosts as it was when it is started again (CVE-2020-8557).
func TestWhatContainersWriteIsBounded(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `exec 2>/dev/null; grep -c other /etc/hosts
for f in /etc/hosts /etc/hostname /etc/resolv.conf /dev/termination-log; do echo other >>$f; dd if=/dev/zero bs=1M count=100 of=$f conv=notrunc oflag=append 2>/dev/null && echo all; done
test -e /v/again && exec sleep 1000; touch /v/again; exit 1`)
	c = withVolume(c, pod.Mount{})
	plan := newPlan(nil, []pod.Container{c})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	p.until("running again", func(st pod.Status) bool {
		return st.Containers[0].RestartCount == 1 && st.Containers[0].State.Running != nil
	})
	if got := p.log("a"); got != "0\n" {
		t.Errorf("the container's log has %q, want no file to take 100 MB", got)
	}
	p.eventuallyLogs("a", 1, "0\n")
	var sum int64
	entries, err := os.ReadDir(filepath.Join(p.place.RuntimeDir(), "sandbox", "written"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			sum += st.Size()
		}
	}
	const most = 16 << 20
	if sum > most {
		t.Errorf("%d bytes were written, want at most %d", sum, most)
	}
}

// eventuallyLogs waits until an instance has written a text.
func (p *testPod) eventuallyLogs(container string, attempt int, want string) {
	p.t.Helper()
	p.eventually("logged", func([]pod.Event) bool {
		var b strings.Builder
		if _, err := os.Stat(p.place.LogFile(container, attempt)); err != nil {
			return false
		}
		for _, r := range parse(p.t, p.place.LogFile(container, attempt)) {
			b.WriteString(r[2] + "\n")
		}
		return b.String() == want
	})
}

// An image whose files in /etc are links gets them where the links lead inside it, and
// nothing outside is touched (CVE-2024-5154); a volume's mountPath through a link, too.
func TestMountsOverLinksStayInside(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := filepath.Join(dir, "layer")
	if err := testenv.BusyboxRootfs(l); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30)
	for name, target := range map[string]string{
		"etc/hosts": canary + "-hosts", "etc/hostname": up + canary[1:], "etc/resolv.conf": "/var/none/resolv.conf", "data": filepath.Join(dir, "vol"), "out": up + dir[1:], "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(l, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := shell(l, "a", "cat /etc/hostname; grep -c localhost /etc/hosts; echo x >/data/in; echo y >/out/sub/in; ls /data")
	c.Mounts = []pod.Mount{{Volume: "v", Path: "/data"}, {Volume: "v", Path: "/out/sub"}}
	plan := newPlan(nil, []pod.Container{c})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Fatalf("%+v: %s", st, p.log("a"))
	}
	if got := p.log("a"); !strings.HasPrefix(got, "p\n2\n") || !strings.Contains(got, "in\n") {
		t.Errorf("log %q", got)
	}
	if b, err := os.ReadFile(canary); err != nil || string(b) != "host" {
		t.Errorf("the canary has %q, %v", b, err)
	}
	for _, name := range []string{"in", "sub", "vol"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made outside", name)
		}
	}

	loop := shell(l, "b", "true")
	loop.Mounts = []pod.Mount{{Volume: "v", Path: "/loop/x"}}
	plan = newPlan(nil, []pod.Container{loop})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p = start(t, plan)
	p.until("refused", func(st pod.Status) bool {
		return st.Phase.Terminal() || st.Containers[0].State.Waiting != nil && st.Containers[0].State.Waiting.Message != ""
	})
}
