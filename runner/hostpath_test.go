package runner

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/sandbox"
)

// A container gets what the host has at a path, for every type of hostPath.
func TestHostPathsOfEveryTypeInAContainer(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := shell(l, "a", `test -S /v/socket && echo socket; test -c /v/zero && head -c 3 /v/zero | wc -c
cat /v/file; echo more >/v/new; test -d /v/made && echo x >/v/made/x; stat -c %a /v/made /v/new; ls /v/any`)
	plan := newPlan(nil, nil)
	for name, kind := range map[string]string{"socket": "Socket", "file": "File", "new": "FileOrCreate", "made": "DirectoryOrCreate", "any": ""} {
		plan.Volumes = append(plan.Volumes, pod.Volume{Name: name, Kind: pod.HostPath, Path: filepath.Join(dir, name), PathType: kind})
		c.Mounts = append(c.Mounts, pod.Mount{Volume: name, Path: "/v/" + name})
	}
	plan.Volumes = append(plan.Volumes, pod.Volume{Name: "zero", Kind: pod.HostPath, Path: "/dev/zero", PathType: "CharDevice"})
	c.Mounts = append(c.Mounts, pod.Mount{Volume: "zero", Path: "/v/zero"})
	plan.Containers = []pod.Container{c}
	p := start(t, plan)
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Fatalf("%+v", st)
	}
	if got, want := p.log("a"), "socket\n3\ncontent\n755\n644\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(b) != "more\n" {
		t.Errorf("new has %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made", "x")); err != nil {
		t.Error(err)
	}
}

// A pod whose hostPath does not match its type waits, and the event has the reason and the hint. It
// starts when the path exists.
func TestAPodWaitsForItsHostPath(t *testing.T) {
	testenv.NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "later")
	plan := newPlan(nil, []pod.Container{withVolume(shell(layer(t), "a", "exec sleep 1000"), pod.Mount{})})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.HostPath, Path: dir, PathType: "Directory"}}
	p := start(t, plan)
	p.eventually("told", func(events []pod.Event) bool {
		for _, e := range events {
			if e.Reason == "FailedMount" && strings.HasSuffix(e.Message, "hostPath type check failed: "+dir+" is not a directory (it does not exist: type DirectoryOrCreate creates it)") {
				return true
			}
		}
		return false
	})
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.poke()
	p.running()
}

// A path to which only a supplementary group of the user gives access is refused where the pod's processes
// stay in the user's groups. The event names the volume, the path and the hint.
func TestAHostPathThatOnlyAGroupOpens(t *testing.T) {
	testenv.NoLeaks(t)
	allowed := sandbox.SetgroupsAllowed
	sandbox.SetgroupsAllowed = func() bool { return false }
	t.Cleanup(func() { sandbox.SetgroupsAllowed = allowed }) // after the pod has ended
	dir := filepath.Join(t.TempDir(), "team")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 1, 1); err != nil {
		t.Fatal(err)
	}
	plan := newPlan(nil, []pod.Container{withVolume(shell(layer(t), "a", "exec sleep 1000"), pod.Mount{})})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.HostPath, Path: dir}}
	p := start(t, plan)
	want := `MountVolume.SetUp failed for volume "v" : ` + dir + " is accessible to this user only through a supplementary group, which is refused for pods without subordinate ids: grant the user access, for example setfacl -m u:USER:rwX " + dir
	p.eventually("told", func(events []pod.Event) bool {
		return slices.ContainsFunc(events, func(e pod.Event) bool { return e.Reason == "FailedMount" && e.Message == want })
	})
	if err := os.Chown(dir, 0, 1); err != nil {
		t.Fatal(err)
	}
	p.running()
}

// A volume with the host's whole root shows only the host's files: nothing that podrun has mounted for the
// pod is in it, neither its processes' /proc nor another container's files and Secrets.
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
