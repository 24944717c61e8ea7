package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// What podrun itself binds in a container is there before libcontainer mounts, which takes it a
// hundred system calls each: but for what links of the image or other mounts have a say in.
func TestPodrunsOwnMountsAreLaid(t *testing.T) {
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
		left                 []string // to libcontainer, in its order
		refused              string   // by it
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
			x := newContainer(s, &c, 7)
			err := x.make(context.Background(), s)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("%v, want %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer x.giveUp(s)
			var left []string
			for _, m := range x.ct.Config().Mounts {
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

// What is laid is mounted as libcontainer would: nobody writes to /sys, set-id programs and
// devices of the files have no effect, and terminals are the container's own.
func TestLaidMountsAreHarmless(t *testing.T) {
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
