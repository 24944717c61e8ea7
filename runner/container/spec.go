package container

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/pod"
)

// specInput is what the runtime specification of a container needs besides the Plan. All paths are absolute, in
// the supervisor's mount namespace.
type specInput struct {
	rootfs         string
	netns          string
	ipcns          string // "" for the host's
	hostPID        bool   // it is in the supervisor's PID namespace, which is the host's
	utsns          string
	pidns          string // "" for a PID namespace of its own
	dev            string // bound over /dev; contains the pod's shared memory and message queues
	sys            string // bound over /sys
	hosts          string // bound over /etc/hosts
	hostname       string // bound over /etc/hostname
	resolv         string // bound over /etc/resolv.conf
	terminationLog string
	sources        []string // sources of the container's volume mounts
	premounted     int      // number of the container's mounts that are in rootfs already
	prebound       []string // paths of podrun's own files that are mounted in rootfs or dev already
	devptsMounted  bool     // the container's devpts is mounted in dev
	unplaceable    []string // files for which their volume has no mount target
	recursive      bool     // the kernel supports recursive read-only mounts
	cgroup         string   // in libcontainer's form; "" without a cgroup
	cgroupsMounted bool     // the host has /sys/fs/cgroup
	ttyGroup       bool     // group 5 is mapped, so that a terminal can belong to it
	oomScoreFloor  int      // sandbox.OOMScoreFloor
}

// Identity is the user and groups of a container's process, resolved in its own root file system.
type Identity struct {
	uid, gid int
	groups   []int
}

// maskedPaths are moby's and containerd's. The paths in /sys are masked in podrun's own /sys already.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
}

var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// runtimeSpec returns the OCI runtime specification of a container. It is pure.
func runtimeSpec(plan *pod.Plan, c *pod.Container, input specInput, id Identity) *specs.Spec {
	caps := c.Capabilities
	score := max(c.OOMScoreAdj, input.oomScoreFloor)
	s := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: input.rootfs, Readonly: c.ReadOnlyRoot},
		Process: &specs.Process{
			Cwd:             c.Cwd, // args and environment follow from more than the Plan
			NoNewPrivileges: c.NoNewPrivileges,
			SelinuxLabel:    c.Label,
			Capabilities:    &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps},
			OOMScoreAdj:     &score,
		},
		Mounts: specMounts(plan, c, input),
		Linux: &specs.Linux{
			Namespaces:        specNamespaces(input),
			CgroupsPath:       input.cgroup,
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
	if c.Privileged { // the user's rights decide which of the devices work
		s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
	}
	return s
}

func specNamespaces(input specInput) []specs.LinuxNamespace {
	n := []specs.LinuxNamespace{
		{Type: specs.MountNamespace},
		{Type: specs.UTSNamespace, Path: input.utsns},
	}
	if !input.hostPID {
		n = append(n, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: input.pidns})
	}
	if input.ipcns != "" { // otherwise the supervisor's, which is the host's
		n = append(n, specs.LinuxNamespace{Type: specs.IPCNamespace, Path: input.ipcns})
	}
	if input.netns != "" { // likewise
		n = append(n, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: input.netns})
	}
	if input.cgroup != "" {
		n = append(n, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return n
}

func specMounts(plan *pod.Plan, c *pod.Container, input specInput) []specs.Mount {
	m := []specs.Mount{
		procMount(input.hostPID),
		bindMount(input.dev, "/dev", "nosuid", "nodev", "noexec"),
	}
	if !input.devptsMounted {
		m = append(m, specs.Mount{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: append([]string{"nosuid", "noexec"}, devptsOptions(input.ttyGroup)...)})
	}
	writable := "ro"
	if c.Privileged {
		writable = "rw"
	}
	switch {
	case c.Privileged && input.netns == "": // the sysfs of the host's network can be mounted by the host's root only
		m = append(m, bindMount("/sys", "/sys", "nosuid", "noexec", "nodev"))
	case c.Privileged:
		m = append(m, specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev"}})
	default:
		m = append(m, bindMount(input.sys, "/sys", "nosuid", "noexec", "nodev", "ro"))
	}
	switch {
	case input.cgroup != "":
		m = append(m, specs.Mount{Destination: cgroupRoot, Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", writable}})
	case c.Privileged && input.netns != "" && input.cgroupsMounted: // its /sys is new; other containers have the host's, with the cgroups
		m = append(m, bindMount(cgroupRoot, cgroupRoot, "nosuid", "noexec", "nodev", "ro"))
	}
	files, over := fileMounts(c, input)
	m = slices.DeleteFunc(append(m, files...), func(o specs.Mount) bool { return slices.Contains(input.prebound, o.Destination) })
	return slices.Concat(m, volumeMounts(plan, c, input), over)
}

// procMount returns the mount of a /proc for the container's PID namespace. Only root could mount one for
// the host's.
func procMount(host bool) specs.Mount {
	if host {
		return bindMount("/proc", "/proc", "nosuid", "noexec", "nodev")
	}
	return specs.Mount{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}}
}

func bindMount(source, target string, options ...string) specs.Mount {
	return specs.Mount{Destination: target, Type: "bind", Source: source, Options: append([]string{"rbind", "rprivate"}, options...)}
}

// hooks returns the hooks that belong to a container's devices, in the specification's form.
func hooks(list []pod.Hook) *specs.Hooks {
	if len(list) == 0 {
		return nil
	}
	h := &specs.Hooks{}
	places := map[string]*[]specs.Hook{
		"prestart": &h.Prestart, "createRuntime": &h.CreateRuntime, "createContainer": &h.CreateContainer,
		"startContainer": &h.StartContainer, "poststart": &h.Poststart, "poststop": &h.Poststop,
	}
	for _, item := range list {
		hook := specs.Hook{Path: item.Path, Args: item.Args, Env: item.Env}
		if item.Timeout > 0 {
			hook.Timeout = &item.Timeout
		}
		if place := places[item.Name]; place != nil {
			*place = append(*place, hook)
		}
	}
	return h
}
