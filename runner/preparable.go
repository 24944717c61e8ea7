package runner

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/pod"
)

// preparable says whether a container can be made before its time: nothing of it may depend
// on what is not known yet, or on what other containers do until then, or be seen by them. It
// is pure; what is unclear is made when it is needed. The first containers of a sandbox are
// made while there are no others, and no network.
func preparable(plan *pod.Plan, c *pod.Container, first bool) bool {
	switch {
	case plan.ShareProcessNamespace, plan.HostPID, plan.Apart, plan.Users != nil: // others reach its process, or its ids are its own
		return false
	case c.Target != "", c.TTY, c.Stdin, c.Privileged, len(c.Hooks) > 0:
		return false
	case slices.ContainsFunc(c.Vars, func(v pod.EnvVar) bool { return v.From != nil && v.From.File != nil }):
		return false
	case first && (len(plan.Sysctls) > 0 || slices.ContainsFunc(c.Vars, func(v pod.EnvVar) bool { return v.From != nil && v.From.Field != "" })):
		return false
	}
	for i, m := range c.Mounts {
		if m.Propagation != "" || !first && (!mountedAlike(plan, m) || !apartFromMount(c, i)) {
			return false
		}
	}
	return true
}

// mountedAlike says whether a mount is the same whenever it is made: a whole volume, which
// nobody mounts anything in.
func mountedAlike(plan *pod.Plan, m pod.Mount) bool {
	if m.SubPath != "" || m.SubPathExpr != "" || m.Propagation != "" {
		return false
	}
	i := slices.IndexFunc(plan.Volumes, func(v pod.Volume) bool { return v.Name == m.Volume })
	return i >= 0 && plan.Volumes[i].Kind != pod.HostPath && !bidirectional(plan, m.Volume)
}

// apartFromMount says whether nothing is looked up, or made, in a volume when the container
// is: where something is mounted, the working directory, the files of its users.
func apartFromMount(c *pod.Container, i int) bool {
	at := c.Mounts[i].Path
	for _, other := range []string{"/etc", "/dev", "/proc", "/sys"} {
		if within(at, other) || within(other, at) {
			return false
		}
	}
	for j, m := range c.Mounts {
		if i != j && within(m.Path, at) {
			return false
		}
	}
	return at != "/" && !strings.HasPrefix(c.Cwd, at+"/") && !within(c.TerminationMessagePath, at)
}
