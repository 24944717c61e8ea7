package container

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/pod"
)

// specConfig is where a container finds what the sandbox has made for it. All paths
// are absolute, in the supervisor's mount namespace.
type specConfig struct {
	rootfs         string
	netns          string
	ipcns          string // "" for the host's
	hostPID        bool   // it is in the supervisor's PID namespace, which is the host's
	utsns          string
	pidns          string // "" for a PID namespace of its own
	dev            string // bound over /dev; the pod's shared memory and message queues are in it
	sys            string // bound over /sys
	hosts          string // bound over /etc/hosts
	hostname       string // bound over /etc/hostname
	resolv         string // bound over /etc/resolv.conf
	terminationLog string
	sources        []string // what the container's mounts of volumes bind
	premounted     int      // so many of the container's mounts are in rootfs
	prebound       []string // where podrun's own are in rootfs, or in dev
	devptsMounted  bool     // the container's own are in dev
	unplaceable    []string // files for which there is no place in the volume that they would be in
	recursive      bool     // the kernel makes mounts recursively read-only
	cgroup         string   // as libcontainer wants it; "" where there is none
	ttyGroup       bool     // group 5 is mapped, so a terminal can belong to it
	oomScoreFloor  int      // an unprivileged process cannot go below its own
}

// Identity is who the container's process is, resolved in its own root.
type Identity struct {
	uid, gid int
	groups   []int
}

// maskedPaths are moby's and containerd's; what is masked in /sys is so already.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
}

var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// runtimeSpec says how a container is to be made. It is pure.
func runtimeSpec(plan *pod.Plan, c *pod.Container, at specConfig, who Identity) *specs.Spec {
	caps := c.Capabilities
	score := max(c.OOMScoreAdj, at.oomScoreFloor)
	s := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: at.rootfs, Readonly: c.ReadOnlyRoot},
		Process: &specs.Process{
			Cwd:             c.Cwd, // whose argv and environment follow from more than the Plan
			NoNewPrivileges: c.NoNewPrivileges,
			SelinuxLabel:    c.Label,
			Capabilities:    &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
			OOMScoreAdj:     &score,
		},
		Mounts: specMounts(plan, c, at),
		Linux: &specs.Linux{
			Namespaces:        specNamespaces(at),
			CgroupsPath:       at.cgroup,
			Resources:         &specs.LinuxResources{},
			Sysctl:            plan.Sysctls,
			MaskedPaths:       maskedPaths,
			ReadonlyPaths:     readonlyPaths,
			RootfsPropagation: rootPropagation(c),
			MountLabel:        c.FileLabel,
		},
	}
	s.Hooks = hooks(c.Hooks)
	if c.Privileged || c.ProcUnmasked {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
	}
	if c.Privileged { // which devices these are the user's rights say
		s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
	}
	return s
}

func specNamespaces(at specConfig) []specs.LinuxNamespace {
	n := []specs.LinuxNamespace{
		{Type: specs.MountNamespace},
		{Type: specs.UTSNamespace, Path: at.utsns},
	}
	if !at.hostPID {
		n = append(n, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: at.pidns})
	}
	if at.ipcns != "" { // else the supervisor's, which is the host's
		n = append(n, specs.LinuxNamespace{Type: specs.IPCNamespace, Path: at.ipcns})
	}
	if at.netns != "" { // the same
		n = append(n, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: at.netns})
	}
	if at.cgroup != "" {
		n = append(n, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return n
}

func specMounts(plan *pod.Plan, c *pod.Container, at specConfig) []specs.Mount {
	m := []specs.Mount{
		procMount(at.hostPID),
		bindMount(at.dev, "/dev", "nosuid", "nodev", "noexec"),
	}
	if !at.devptsMounted {
		m = append(m, specs.Mount{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: append([]string{"nosuid", "noexec"}, devptsOptions(at.ttyGroup)...)})
	}
	writable := "ro"
	if c.Privileged {
		writable = "rw"
		m = append(m, specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev"}})
	} else {
		m = append(m, bindMount(at.sys, "/sys", "nosuid", "noexec", "nodev", "ro"))
	}
	if at.cgroup != "" {
		m = append(m, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", writable}})
	}
	files, over := fileMounts(c, at)
	m = slices.DeleteFunc(append(m, files...), func(o specs.Mount) bool { return slices.Contains(at.prebound, o.Destination) })
	return slices.Concat(m, volumeMounts(plan, c, at), over)
}

// procMount is a /proc of the container's PID namespace. Of the host's only root could mount one.
func procMount(host bool) specs.Mount {
	if host {
		return bindMount("/proc", "/proc", "nosuid", "noexec", "nodev")
	}
	return specs.Mount{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}}
}

func bindMount(source, target string, options ...string) specs.Mount {
	return specs.Mount{Destination: target, Type: "bind", Source: source, Options: append([]string{"rbind", "rprivate"}, options...)}
}

// hooks are those that come with a container's devices, in the specification's form.
func hooks(list []pod.Hook) *specs.Hooks {
	if len(list) == 0 {
		return nil
	}
	h := &specs.Hooks{}
	places := map[string]*[]specs.Hook{
		"prestart": &h.Prestart, "createRuntime": &h.CreateRuntime, "createContainer": &h.CreateContainer,
		"startContainer": &h.StartContainer, "poststart": &h.Poststart, "poststop": &h.Poststop,
	}
	for _, one := range list {
		hook := specs.Hook{Path: one.Path, Args: one.Args, Env: one.Env}
		if one.Timeout > 0 {
			hook.Timeout = &one.Timeout
		}
		if at := places[one.Name]; at != nil {
			*at = append(*at, hook)
		}
	}
	return h
}
