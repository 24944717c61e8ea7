package container

import (
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
)

func testPlace() specInput {
	return specInput{
		rootfs: "/r", netns: "/n", ipcns: "/i", utsns: "/u",
		dev: "/s/dev", sys: "/s/sys", hosts: "/s/hosts", hostname: "/s/hostname", terminationLog: "/s/log",
		sources: []string{"/vol/v", "/vol/v"},
	}
}

func find(ms []specs.Mount, target string) *specs.Mount {
	for i := range ms {
		if ms[i].Destination == target {
			return &ms[i]
		}
	}
	return nil
}

func TestRuntimeSpecMounts(t *testing.T) {
	c := &pod.Container{
		Name: "a", Args: []string{"/bin/true"}, TerminationMessagePath: "/dev/termination-log",
		Mounts: []pod.Mount{{Volume: "v", Path: "/data", ReadOnly: true}, {Volume: "v", Path: "/etc/hosts"}},
	}
	ms := runtimeSpec(&pod.Plan{}, c, testPlace(), Identity{}).Mounts
	if m := find(ms, "/data"); m == nil || m.Source != "/vol/v" || !slices.Contains(m.Options, "ro") || !slices.Contains(m.Options, "nodev") {
		t.Errorf("read-only volume mount: %+v", m)
	}
	if m := find(ms, "/etc/hosts"); m == nil || m.Source != "/vol/v" || slices.Contains(m.Options, "ro") {
		t.Errorf("a volume at /etc/hosts must win over the pod's file: %+v", m)
	}
	if m := find(ms, "/etc/hostname"); m == nil || m.Source != "/s/hostname" {
		t.Errorf("/etc/hostname: %+v", m)
	}
	if m := find(ms, "/dev"); m == nil || m.Source != "/s/dev" || m.Options[0] != "rbind" {
		t.Errorf("/dev must come from the sandbox, with what is mounted in it: %+v", m)
	}
	if m := find(ms, "/sys"); m == nil || m.Source != "/s/sys" || !slices.Contains(m.Options, "ro") {
		t.Errorf("/sys must be the pod's, read-only: %+v", m)
	}
	if m := find(ms, "/sys/fs/cgroup"); m != nil {
		t.Errorf("no cgroup, and yet a mount: %+v", m)
	}
	if m := find(ms, "/dev/pts"); slices.Contains(m.Options, "gid=5") {
		t.Errorf("group 5 is not mapped, and yet: %v", m.Options)
	}
}

// A privileged container has a writable /sys: of its pod's network, or the host's own, because only the host's
// root could mount that again.
func TestRuntimeSpecPrivilegedSys(t *testing.T) {
	c := &pod.Container{Name: "a", Args: []string{"/bin/true"}, Privileged: true}
	if m := find(runtimeSpec(&pod.Plan{}, c, testPlace(), Identity{}).Mounts, "/sys"); m == nil || m.Type != "sysfs" || slices.Contains(m.Options, "ro") {
		t.Errorf("in the pod's network: %+v", m)
	}
	if m := find(runtimeSpec(&pod.Plan{}, c, testPlace(), Identity{}).Mounts, "/sys/fs/cgroup"); m != nil {
		t.Errorf("a kernel without cgroups: %+v", m)
	}
	at := testPlace()
	at.cgroupsMounted = true
	if m := find(runtimeSpec(&pod.Plan{}, c, at, Identity{}).Mounts, "/sys/fs/cgroup"); m == nil || m.Source != "/sys/fs/cgroup" || !slices.Contains(m.Options, "ro") {
		t.Errorf("the cgroups of a container without one: %+v", m)
	}
	at.netns = ""
	if m := find(runtimeSpec(&pod.Plan{}, c, at, Identity{}).Mounts, "/sys"); m == nil || m.Source != "/sys" || m.Type != "bind" || slices.Contains(m.Options, "ro") {
		t.Errorf("in the host's network: %+v", m)
	}
}

func TestRuntimeSpecNamespaces(t *testing.T) {
	at := testPlace()
	own := runtimeSpec(&pod.Plan{}, &pod.Container{}, at, Identity{}).Linux.Namespaces
	at.pidns, at.cgroup = "/proc/7/ns/pid", "/x/podrun-u/a"
	shared := runtimeSpec(&pod.Plan{}, &pod.Container{}, at, Identity{}).Linux.Namespaces
	for _, n := range own {
		switch n.Type {
		case specs.PIDNamespace, specs.MountNamespace:
			if n.Path != "" {
				t.Errorf("%s namespace is joined, want an own one", n.Type)
			}
		case specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace:
			if n.Path == "" {
				t.Errorf("%s namespace is new, want the sandbox's", n.Type)
			}
		default:
			t.Errorf("unexpected namespace %s", n.Type)
		}
	}
	if !slices.Contains(shared, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: "/proc/7/ns/pid"}) {
		t.Errorf("shared PID namespace is not joined: %v", shared)
	}
	if !slices.Contains(shared, specs.LinuxNamespace{Type: specs.CgroupNamespace}) {
		t.Errorf("a container with a cgroup needs a cgroup namespace: %v", shared)
	}
}

func TestRuntimeSpecOOMScoreIsClampedToOurOwn(t *testing.T) {
	at := testPlace()
	at.oomScoreFloor = 200
	for _, tt := range []struct{ want, asked int }{{200, -997}, {200, 3}, {1000, 1000}} {
		s := runtimeSpec(&pod.Plan{}, &pod.Container{OOMScoreAdj: tt.asked}, at, Identity{})
		if got := *s.Process.OOMScoreAdj; got != tt.want {
			t.Errorf("oom_score_adj for %d = %d, want %d", tt.asked, got, tt.want)
		}
	}
}

func TestStopSignal(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"": unix.SIGTERM, "SIGQUIT": unix.SIGQUIT, "quit": unix.SIGQUIT, "3": unix.SIGQUIT,
		"SIGRTMIN+3": 37, "SIGNOSUCH": unix.SIGTERM, "99": unix.SIGTERM,
	} {
		x := &Container{Plan: &pod.Container{StopSignal: text}}
		if got := x.StopSignal(); got != want {
			t.Errorf("stop signal of %q = %v, want %v", text, got, want)
		}
	}
}

func TestExecEnv(t *testing.T) {
	x := execEnv([]string{"A=1", "B=2"}, &wire.ExecRequest{Env: []string{"B=3", "C=4"}})
	if want := []string{"A=1", "B=3", "C=4"}; !slices.Equal(x, want) {
		t.Errorf("environment %v, want %v", x, want)
	}
}
