package container

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	_ "github.com/podrun/podrun/internal/reexec/containerinit" // makes plain containers
)

// plainHost is what a host must have for a plain container.
type plainHost struct {
	cgroup2Only bool // there are no cgroups of version 1, which are mounted one by one
	mountAttrs  bool // the kernel can set a mount's attributes by a descriptor (Linux 5.12)
}

// isPlain reports whether a container is plain: then its init is the one in C (internal/reexec/containerinit), which starts in
// a quarter of the time of libcontainer's, but can do less. It refuses what this function should not have let through.
func isPlain(c *configs.Config, p *libcontainer.Process, host plainHost) bool {
	return host.mountAttrs && !hasRareParts(c) && !hasRareProcess(p) &&
		!slices.ContainsFunc(c.Mounts, func(m *configs.Mount) bool { return !isPlainMount(m, host) }) &&
		slices.ContainsFunc(c.Mounts, func(m *configs.Mount) bool { return m.Destination == "/dev" && m.Device == "bind" })
}

// hasRareParts reports whether a container needs more than mounts and protected paths.
func hasRareParts(c *configs.Config) bool {
	return slices.Contains([]bool{
		c.NoPivotRoot, !filepath.IsAbs(c.Rootfs), c.RootPropagation&^(unix.MS_PRIVATE|unix.MS_SLAVE|unix.MS_REC) != 0,
		!c.Namespaces.Contains(configs.NEWNS), c.Namespaces.Contains(configs.NEWUSER), len(c.UIDMappings) != 0, len(c.GIDMappings) != 0, c.RootlessEUID,
		len(c.TimeOffsets) != 0, len(c.Networks) != 0, len(c.NetDevices) != 0, len(c.Routes) != 0,
		c.Hostname != "", c.Domainname != "", len(c.Sysctl) != 0, hasHooks(c), !c.NoNewKeyring, c.ParentDeathSignal != 0, c.Umask != nil,
		c.Seccomp != nil, c.AppArmorProfile != "", c.ProcessLabel != "", c.MountLabel != "",
		c.IntelRdt != nil, c.MemoryPolicy != nil, c.Scheduler != nil, c.Personality != nil, c.IOPriority != nil, c.ExecCPUAffinity != nil,
		slices.ContainsFunc(c.MaskPaths, isOutsideProc), slices.ContainsFunc(c.ReadonlyPaths, isOutsideProc),
	}, true)
}

func isOutsideProc(path string) bool {
	return filepath.Clean(path) != path || !strings.HasPrefix(path, "/proc/") || strings.Contains(path, "\x00")
}

func hasHooks(c *configs.Config) bool {
	for _, list := range c.Hooks {
		if len(list) != 0 {
			return true
		}
	}
	return false
}

// hasRareProcess reports whether a container's process needs more than a user and an environment. The exec shim is its
// program, which libcontainer would look for in PATH otherwise.
func hasRareProcess(p *libcontainer.Process) bool {
	return slices.Contains([]bool{
		p.ConsoleSocket != nil, p.ConsoleWidth != 0, p.ConsoleHeight != 0, p.PidfdSocket != nil, p.AppArmorProfile != "", p.Label != "",
		p.Scheduler != nil, p.IOPriority != nil, p.CPUAffinity != nil, p.Capabilities == nil, len(p.ExtraFiles) == 0,
		len(p.Args) == 0 || !strings.HasPrefix(p.Args[0], "/proc/self/fd/"), hasNUL(p.Args), !isPlainEnv(p.Env), !filepath.IsAbs(p.Cwd),
	}, true)
}

// isPlainEnv reports whether libcontainer would accept and not change an environment, except for a missing HOME.
func isPlainEnv(env []string) bool {
	names := make(map[string]bool, len(env))
	for _, v := range env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || names[name] || name == "HOME" && value == "" {
			return false
		}
		names[name] = true
	}
	return !hasNUL(env)
}

func hasNUL(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "\x00") })
}

// isPlainMount reports whether a mount is one of podrun's own, at one of a few paths. A volume that is still to be mounted
// has a path with links, or needs propagation.
func isPlainMount(m *configs.Mount, host plainHost) bool {
	const bindFlags = unix.MS_BIND | unix.MS_REC | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME
	if m.RecAttr != nil || m.Extensions != 0 || m.IDMapping != nil || len(m.PropagationFlags) > 1 {
		return false
	}
	switch m.Device + " " + m.Destination {
	case "bind /proc", "bind /sys":
		return m.Flags&^bindFlags == 0 && m.Data == ""
	case "bind /dev":
		return m.Flags&^bindFlags == 0 && m.Flags&unix.MS_RDONLY == 0 && m.Data == ""
	case "proc /proc", "sysfs /sys", "devpts /dev/pts":
		return m.Flags&unix.MS_BIND == 0 && len(m.PropagationFlags) == 0
	case "cgroup /sys/fs/cgroup":
		return host.cgroup2Only && m.Flags&unix.MS_BIND == 0 && m.Flags&^bindFlags == 0 && len(m.PropagationFlags) == 0
	}
	return false
}
