package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// withVolume is a container that has a volume of the name v on /v.
func withVolume(c pod.Container, m pod.Mount) pod.Container {
	m.Volume, m.Path = "v", "/v"
	c.Mounts = append(c.Mounts, m)
	return c
}

func TestSubPaths(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "canary"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "volume"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../canary", filepath.Join(dir, "volume", "evil")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "volume", "team"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, "volume", "team"), 1, 1); err != nil {
		t.Fatal(err)
	}
	allowed := groupsAllowed
	groupsAllowed = func() bool { return false }
	t.Cleanup(func() { groupsAllowed = allowed }) // once the pods have ended
	for _, tt := range []struct {
		name string
		v    pod.Volume
		m    pod.Mount
		want string // of the container's log; "!" begins why it waits
	}{
		{"made", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPath: "a/b"}, "a\n"},
		{"expanded", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPathExpr: "$(NAME)/x"}, "web\n"},
		{"read-only", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPath: "a", ReadOnly: true}, "ro\na\n"},
		{"of an image", pod.Volume{Kind: pod.ImageVolume, Layers: []string{l}}, pod.Mount{SubPath: "etc"}, "ro\ngroup\npasswd\n"},
		{"no variable", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPathExpr: "$(NONE)"}, `!missing value for "NONE"`},
		{"upwards by a variable", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPathExpr: "$(UP)"}, "!unable to provision SubPath `../x`: must not contain '..'"},
		{"absolute by a variable", pod.Volume{Kind: pod.EmptyDir}, pod.Mount{SubPathExpr: "$(ROOT)"}, "!error SubPath `/etc` must not be an absolute path"},
		{"a link out", pod.Volume{Kind: pod.HostPath, Path: filepath.Join(dir, "volume")}, pod.Mount{SubPath: "evil"},
			`!failed to prepare subPath for volumeMount "v" of container "a": open subPath evil: it leads out of the volume`},
		{"only a group opens", pod.Volume{Kind: pod.HostPath, Path: filepath.Join(dir, "volume")}, pod.Mount{SubPath: "team"},
			`!failed to prepare subPath for volumeMount "v" of container "a": ` + filepath.Join(dir, "volume", "team") +
				" is accessible to this user only through a supplementary group, which is refused for pods without subordinate ids: grant the user access, for example setfacl -m u:USER:rwX " + filepath.Join(dir, "volume", "team")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := shell(l, "a", "echo x 2>/dev/null >/v/f || echo ro; ls /w 2>/dev/null || ls /v")
			c = withVolume(c, tt.m)
			if tt.v.Kind == pod.EmptyDir {
				c.Mounts = append(c.Mounts, pod.Mount{Volume: "v", Path: "/w"})
			}
			c.Vars = []pod.EnvVar{{Name: "NAME", Value: "web"}, {Name: "UP", Value: "../x"}, {Name: "ROOT", Value: "/etc"}}
			tt.v.Name = "v"
			plan := newPlan(nil, []pod.Container{c})
			plan.Volumes = []pod.Volume{tt.v}
			p := start(t, plan)
			if why, bad := strings.CutPrefix(tt.want, "!"); bad {
				p.until("waiting", func(st pod.Status) bool {
					w := st.Containers[0].State.Waiting
					return w != nil && w.Reason == "CreateContainerConfigError" && w.Message == why
				})
				return
			}
			if st := p.ended(); st.Phase != pod.Succeeded {
				t.Fatalf("%+v", st)
			}
			if got := p.log("a"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What the host mounts in a hostPath later is seen with HostToContainer only, and what a
// privileged container mounts is seen by the pod's others, with Bidirectional.
func TestMountPropagation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil { // as the host's are, for a pod
		t.Fatal(err)
	}
	for _, sub := range []string{"later", "inner"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plan := newPlan(nil, []pod.Container{
		withVolume(shell(l, "none", "exec sleep 1000"), pod.Mount{}),
		withVolume(shell(l, "slave", "exec sleep 1000"), pod.Mount{Propagation: pod.HostToContainer}),
		withVolume(shell(l, "shared", "exec sleep 1000"), pod.Mount{Propagation: pod.Bidirectional}),
	})
	plan.Containers[2].Capabilities = append(slices.Clone(testCaps), "CAP_SYS_ADMIN")
	plan.Containers[2].SeccompUnconfined = true
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.HostPath, Path: dir}}
	p := start(t, plan)
	p.running()
	if err := unix.Mount("tmpfs", filepath.Join(dir, "later"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(filepath.Join(dir, "later"), unix.MNT_DETACH)
	if code, out := p.exec("shared", "/bin/mount", "-t", "tmpfs", "mine", "/v/inner"); code != 0 {
		t.Fatalf("mount in a container: %s", out)
	}
	for c, want := range map[string]string{"none": "0 0", "slave": "1 1", "shared": "1 1"} {
		_, out := p.exec(c, "/bin/sh", "-c", "echo $(grep -c ' /v/later ' /proc/mounts) $(grep -c '^mine /v/inner ' /proc/mounts)")
		if strings.TrimSpace(out) != want {
			t.Errorf("%s sees %q mounts, want %q", c, out, want)
		}
	}
	p.exec("shared", "/bin/umount", "/v/inner")
}

// What is mounted in a volume below stays writable with readOnly, and not if that is to
// be recursive.
func TestRecursiveReadOnly(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "mode=0777"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(below, unix.MNT_DETACH) })
	const script = "for d in /v /v/below; do echo x 2>/dev/null >$d/f && echo rw || echo ro; done"
	plan := newPlan(nil, []pod.Container{
		withVolume(shell(l, "top", script), pod.Mount{ReadOnly: true}),
		withVolume(shell(l, "all", script), pod.Mount{ReadOnly: true, Recursive: pod.RecursiveEnabled}),
		withVolume(shell(l, "maybe", script), pod.Mount{ReadOnly: true, Recursive: pod.RecursiveIfPossible}),
	})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.HostPath, Path: dir}}
	p := start(t, plan)
	p.ended()
	for c, want := range map[string]string{"top": "ro\nrw\n", "all": "ro\nro\n", "maybe": "ro\nro\n"} {
		if got := p.log(c); got != want {
			t.Errorf("%s: %q, want %q", c, got, want)
		}
	}
}
