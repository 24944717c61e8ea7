package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/internal/store"
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

// Containers of a pod with the same capabilities have one filter between them, but for profiles of their own.
func TestContainersShareTheDefaultFilter(t *testing.T) {
	dir := t.TempDir()
	s := &sandbox{trampoline: &trampoline.Program{}, store: store.Dirs{Data: dir + "/data", Runtime: dir + "/run"}.Pod("default", "p")}
	confined := func(caps []string, own string) confinement {
		c := &pod.Container{Capabilities: caps, Seccomp: []byte(own)}
		if own == "" {
			c.Seccomp = nil
		}
		profile, err := seccompFilter(c, &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}, Linux: &specs.Linux{}})
		if err != nil {
			t.Fatal(err)
		}
		config := &configs.Config{}
		if config.Seccomp, err = specconv.SetupSeccomp(profile); err != nil {
			t.Fatal(err)
		}
		f, err := s.confine(c, config)
		if err != nil || config.Seccomp != nil || len(f.filter.Program) == 0 || f.key == "" {
			t.Fatalf("%v, %v, %d bytes, key %q", err, config.Seccomp, len(f.filter.Program), f.key)
		}
		return f
	}
	same := func(a, b confinement) bool { return &a.filter.Program[0] == &b.filter.Program[0] && a.key == b.key }
	first := confined([]string{"CAP_KILL"}, "")
	if again := confined([]string{"CAP_KILL"}, ""); !same(first, again) {
		t.Error("a second container has a filter of its own")
	}
	if other := confined([]string{"CAP_KILL", "CAP_SYS_ADMIN"}, ""); same(first, other) {
		t.Error("a container with other capabilities has the first one's filter")
	}
	if own := confined([]string{"CAP_KILL"}, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_ERRNO"}]}`); same(first, own) || !own.own {
		t.Error("a container with a profile of its own has the default one's filter")
	}
}

// Where libcontainer cannot make cgroups it does not look for the supervisor's in each of many
// hierarchies; but it must not find any at the top, where root might make them.
func TestCgroupsThatAreNotToBeHad(t *testing.T) {
	plan := newPlan(nil, []pod.Container{shell("", "a", "true")})
	x := newContainer(&sandbox{}, &plan.Containers[0], 0)
	config := &configs.Config{Cgroups: &cgroups.Cgroup{Name: "a-0"}}
	x.harden(&sandbox{plan: plan}, config)
	atTop := config.Cgroups.Parent == "/" && config.Cgroups.Name == containerID(plan, x)
	if want := !unified() && !mapsRoot(); atTop != want {
		t.Errorf("they are looked for in %q as %q; at the top: want %t", config.Cgroups.Parent, config.Cgroups.Name, want)
	}
	for uidMap, want := range map[string]bool{
		"         0          0 4294967295\n": true, "0 1000 1\n1 100000 65536\n": false, "0 100000 65536\n": false, "": true, "0": true,
	} {
		if keepsRoot(uidMap) != want {
			t.Errorf("%q: root is root outside: want %t", uidMap, want)
		}
	}
}

// libcontainer's process would tell of every step, the supervisor read it, and forget it.
func TestLibcontainerTellsErrorsOnly(t *testing.T) {
	c := shell("", "a", "true")
	if p := newContainer(&sandbox{}, &c, 0).newProcess(nil, nil, "/"); p.LogLevel != "2" {
		t.Errorf("its log level is %q, want that of errors", p.LogLevel)
	}
}
