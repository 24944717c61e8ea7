package runner

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// What the host has at a path is what a container has, of every type.
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

// A pod whose hostPath is not what its type says waits, and the event says why and what
// would make it; it starts when the path is there.
func TestAPodWaitsForItsHostPath(t *testing.T) {
	testenv.NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "later")
	plan := newPlan(nil, []pod.Container{withVolume(shell(layer(t), "a", "exec sleep 1000"), pod.Mount{})})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.HostPath, Path: dir, PathType: "Directory"}}
	p := start(t, plan)
	p.eventually("told", func(events []pod.Event) bool {
		for _, e := range events {
			if e.Reason == "FailedMount" && strings.HasSuffix(e.Message, "hostPath type check failed: "+dir+" is not a directory (there is nothing: type DirectoryOrCreate makes it)") {
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

// What only a group of the user opens is refused where the pod's processes stay in the user's groups:
// the event names the volume, the path and the cure.
func TestAHostPathThatOnlyAGroupOpens(t *testing.T) {
	testenv.NoLeaks(t)
	allowed := groupsAllowed
	groupsAllowed = func() bool { return false }
	t.Cleanup(func() { groupsAllowed = allowed }) // once the pod has ended
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
