package prepared

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/sandbox"
)

// eligible reports whether a container can be made before it is due. No part of it may depend on values that
// are not known yet, or on what other containers do until then, or be visible to other containers. In doubt
// eligible returns false, and the container is made when it is due. sandboxCreating means that the sandbox is still
// being made: it has no network. firstInSandbox means that no other container runs before this one. eligible is pure.
func eligible(plan *pod.Plan, c *pod.Container, firstInSandbox, sandboxCreating bool) bool {
	switch {
	case plan.ShareProcessNamespace, plan.HostPID, plan.OwnUserNS, plan.Users != nil: // others reach it, or its ids differ
		return false
	case c.Target != "", c.TTY, c.Stdin, c.Privileged, len(c.Hooks) > 0:
		return false
	case slices.ContainsFunc(c.Vars, func(v pod.EnvVar) bool { return v.From != nil && v.From.File != nil }):
		return false
	case sandboxCreating && (len(plan.Sysctls) > 0 || slices.ContainsFunc(c.Vars, func(v pod.EnvVar) bool { return v.From != nil && v.From.Field != "" })):
		return false
	}
	for i, m := range c.Mounts {
		if m.Propagation != "" || !firstInSandbox && (!stableMount(plan, m) || !independentOfMount(c, i)) {
			return false
		}
	}
	return true
}

// stableMount reports whether a mount is the same whenever it is made: a whole volume in which no container
// mounts anything.
func stableMount(plan *pod.Plan, m pod.Mount) bool {
	if m.SubPath != "" || m.SubPathExpr != "" || m.Propagation != "" {
		return false
	}
	i := slices.IndexFunc(plan.Volumes, func(v pod.Volume) bool { return v.Name == m.Volume })
	return i >= 0 && plan.Volumes[i].Kind != pod.HostPath && !sandbox.IsBidirectional(plan, m.Volume)
}

// independentOfMount reports whether making the container looks nothing up and creates nothing in its i-th mount.
// So the mount must not contain another mount's target, the working directory, the file of the termination message,
// or anything of /etc (the files with its users), /dev, /proc and /sys.
func independentOfMount(c *pod.Container, i int) bool {
	place := c.Mounts[i].Path
	for _, other := range []string{"/etc", "/dev", "/proc", "/sys"} {
		if container.Within(place, other) || container.Within(other, place) {
			return false
		}
	}
	for j, m := range c.Mounts {
		if i != j && container.Within(m.Path, place) {
			return false
		}
	}
	return place != "/" && !strings.HasPrefix(c.Cwd, place+"/") && !container.Within(c.TerminationMessagePath, place)
}
