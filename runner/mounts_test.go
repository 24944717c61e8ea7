package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/sandbox"
)

// withVolume adds a volume of the name v at /v to a container.
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
	allowed := sandbox.SetgroupsAllowed
	sandbox.SetgroupsAllowed = func() bool { return false }
	t.Cleanup(func() { sandbox.SetgroupsAllowed = allowed }) // after the pods have ended
	for _, tt := range []struct {
		name string
		v    pod.Volume
		m    pod.Mount
		want string // of the container's log; with "!" the beginning of the reason why it waits
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
			if reason, bad := strings.CutPrefix(tt.want, "!"); bad {
				p.until("waiting", func(st pod.Status) bool {
					w := st.Containers[0].State.Waiting
					return w != nil && w.Reason == "CreateContainerConfigError" && w.Message == reason
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

// A container sees later mounts of the host in a hostPath only with HostToContainer. The pod's other
// containers see a privileged container's mounts only with Bidirectional.
func TestMountPropagation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil { // shared like the host's mounts
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

// Mounts below a volume stay writable with readOnly, unless it is recursive.
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

// podrun's own mounts are made before libcontainer's, which cost a hundred system calls each. The
// exceptions are those that depend on links of the image or on other mounts.
func TestMountsBeforeLibcontainer(t *testing.T) {
	testenv.NoLeaks(t)
	linked := layer(t)
	if err := os.Mkdir(filepath.Join(linked, "etc"), 0o755); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink("/tmp/resolv", filepath.Join(linked, "etc/resolv.conf")); err != nil {
		t.Fatal(err)
	}
	volume := []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	for _, tt := range []struct {
		name, layer, message string
		m                    []pod.Mount
		left                 []string // the mounts left to libcontainer, in its order
		refused              string   // by libcontainer
	}{
		{name: "plain", layer: layer(t), message: "/dev/termination-log"},
		{name: "a message elsewhere", layer: layer(t), message: "/tmp/a/log"},
		{name: "a link of the image", layer: linked, message: "/dev/termination-log", left: []string{"/etc/resolv.conf"}},
		{name: "a volume around", layer: layer(t), message: "/dev/termination-log", m: []pod.Mount{{Volume: "v", Path: "/etc"}},
			left: []string{"/etc", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}},
		{name: "a message at the terminals", layer: layer(t), message: "/dev/pts", refused: `to rootfs at "/dev/pts"`},
		{name: "a volume at the terminals", layer: layer(t), message: "/dev/termination-log", m: []pod.Mount{{Volume: "v", Path: "/dev/pts"}}, left: []string{"/dev/pts"}},
		{name: "propagation", layer: layer(t), message: "/dev/termination-log", m: []pod.Mount{{Volume: "v", Path: "/data", Propagation: pod.HostToContainer}},
			left: []string{"/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log", "/data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := shell(tt.layer, "a", "true")
			c.TerminationMessagePath, c.Mounts = tt.message, tt.m
			p := start(t, func() *pod.Plan {
				plan := newPlan(nil, []pod.Container{shell(layer(t), "other", "sleep 99")})
				plan.Volumes = volume
				return plan
			}())
			p.running()
			p.engine.mu.Lock()
			s := p.engine.sandbox
			p.engine.mu.Unlock()
			x := container.New(s, &c, 7)
			err := x.Create(context.Background(), s)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("%v, want %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer x.Discard(s)
			var left []string
			for _, m := range x.Libcontainer.Config().Mounts {
				if !slices.Contains([]string{"/proc", "/dev", "/sys/fs/cgroup"}, m.Destination) {
					left = append(left, m.Destination)
				}
			}
			if !slices.Equal(left, tt.left) {
				t.Errorf("libcontainer mounts %q, want %q", left, tt.left)
			}
		})
	}
}

// Mounts that podrun makes early have the same options as libcontainer's: /sys is read-only, set-id
// programs and devices of the files have no effect, and terminals are the container's own.
func TestOptionsOfMountsBeforeLibcontainer(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "cat /proc/self/mounts")
	c.TerminationMessagePath = "/dev/termination-log"
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.ended()
	seen := map[string][]string{}
	for line := range strings.Lines(p.log("a")) {
		f := strings.Fields(line)
		seen[f[1]] = strings.Split(f[3], ",")
	}
	for _, hidden := range []string{"/sys/firmware", "/sys/dev/block"} {
		if _, err := os.Stat(hidden); err == nil && !slices.Contains(seen[hidden], "ro") {
			t.Errorf("%s is mounted %q", hidden, seen[hidden])
		}
	}
	for target, want := range map[string][]string{
		"/sys": {"ro", "nosuid", "nodev", "noexec"}, "/etc/hosts": {"rw", "nosuid", "nodev"}, "/etc/hostname": {"rw", "nosuid", "nodev"},
		"/etc/resolv.conf": {"rw", "nosuid", "nodev"}, "/dev/termination-log": {"rw", "nosuid", "nodev"}, "/dev/pts": {"rw", "nosuid", "noexec", "ptmxmode=666", "mode=620"},
	} {
		for _, w := range want {
			if !slices.Contains(seen[target], w) {
				t.Errorf("%s is mounted %q, without %s", target, seen[target], w)
			}
		}
	}
}

// podrun's own files are visible in a volume that is mounted around them, too, unless the volume has no
// mount target for them.
func TestFilesOfPodrunsOverVolumes(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	host := t.TempDir()
	for _, name := range []string{"hosts", "own"} {
		if err := os.WriteFile(filepath.Join(host, name), []byte("the volume's "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const files = "cat /etc/hostname; grep -c localhost /etc/hosts; ls /etc"
	kube := "p\n2\nhostname\nhosts\nresolv.conf\n"
	for _, tt := range []struct {
		name, script, message string
		v                     pod.Volume
		m                     pod.Mount
		want, said            string
	}{
		{name: "a volume around them", script: files, v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/etc"}, want: kube},
		{name: "in memory", script: files, v: pod.Volume{Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}, m: pod.Mount{Path: "/etc"}, want: kube},
		{name: "a part of one", script: files, v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/etc", SubPath: "a"}, want: kube},
		{name: "read-only without all of them", script: "cat /etc/hostname; grep -c localhost /etc/hosts; cat /etc/own; ls /etc",
			v: pod.Volume{Kind: pod.HostPath, Path: host}, m: pod.Mount{Path: "/etc", ReadOnly: true}, want: "2\nthe volume's own\nhosts\nown\n"},
		{name: "mounted at one itself", script: "cat /etc/hosts", v: pod.Volume{Kind: pod.HostPath, Path: filepath.Join(host, "hosts")},
			m: pod.Mount{Path: "/etc/hosts"}, want: "the volume's hosts\n"},
		{name: "a message in a volume", script: "echo last words >/tmp/a/log", message: "/tmp/a/log",
			v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/tmp"}, said: "last words\n"},
		{name: "a message where nobody may make files", script: "test -c /dev/null && echo here", message: "/dev/termination-log",
			v: pod.Volume{Kind: pod.HostPath, Path: "/dev"}, m: pod.Mount{Path: "/dev"}, want: "here\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := shell(l, "a", tt.script+" 2>&1; true")
			c.TerminationMessagePath = tt.message
			tt.v.Name, tt.m.Volume = "v", "v"
			c.Mounts = append(c.Mounts, tt.m)
			plan := newPlan(nil, []pod.Container{c})
			plan.Volumes = []pod.Volume{tt.v}
			p := start(t, plan)
			st := p.ended()
			if st.Phase != pod.Succeeded {
				t.Fatalf("%+v", st)
			}
			got := p.log("a")
			if !strings.HasPrefix(tt.want, "p") {
				got = strings.ReplaceAll(got, "cat: can't open '/etc/hostname': No such file or directory\n", "")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if end := st.Containers[0].State.Terminated; end == nil || end.Message != tt.said {
				t.Errorf("ended as %+v, want the message %q", end, tt.said)
			}
		})
	}
	if found, err := filepath.Glob(filepath.Join(host, "*")); err != nil || len(found) != 2 {
		t.Errorf("the host's directory has %v, %v", found, err)
	}
}

// The mount points of nearly every container are in a layer that all pods share. Only a mount of the user's choice
// takes a directory in the writable layer.
func TestMountPointsAreShared(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	c := withVolume(shell(l, "a", "exec sleep 1000"), pod.Mount{})
	account := pod.Mount{Volume: "account", Path: pod.ServiceAccountPath, ReadOnly: true}
	c.Mounts = append(c.Mounts, account)
	other := shell(l, "other", "exec sleep 1000")
	other.Mounts = []pod.Mount{{Volume: "v", Path: "/etc"}}
	plan := newPlan(nil, []pod.Container{c, other})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}, {Name: "account", Kind: pod.Files}}
	p := start(t, plan)
	p.running()
	for name, want := range map[string]string{"a-0": "v", "other-0": ""} {
		made, err := filepath.Glob(filepath.Join(p.place.RootfsDir(), name, "upper", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range made {
			made[i] = filepath.Base(made[i])
		}
		if got := strings.Join(made, " "); got != want {
			t.Errorf("%s: the writable layer has %q, want %q", name, got, want)
		}
	}
}
