package prewarm

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/sandbox"
)

// eligible says whether a container can be made before its time: nothing of it may depend
// on what is not known yet, or on what other containers do until then, or be seen by them. It
// is pure; what is unclear is made when it is needed. The first containers of a sandbox are
// made while there are no others, and no network.
func eligible(plan *pod.Plan, c *pod.Container, first bool) bool {
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
		if m.Propagation != "" || !first && (!stableMount(plan, m) || !independentOfMount(c, i)) {
			return false
		}
	}
	return true
}

// stableMount says whether a mount is the same whenever it is made: a whole volume, which
// nobody mounts anything in.
func stableMount(plan *pod.Plan, m pod.Mount) bool {
	if m.SubPath != "" || m.SubPathExpr != "" || m.Propagation != "" {
		return false
	}
	i := slices.IndexFunc(plan.Volumes, func(v pod.Volume) bool { return v.Name == m.Volume })
	return i >= 0 && plan.Volumes[i].Kind != pod.HostPath && !sandbox.IsBidirectional(plan, m.Volume)
}

// independentOfMount says whether nothing is looked up, or made, in a volume when the container
// is: where something is mounted, the working directory, the files of its users.
func independentOfMount(c *pod.Container, i int) bool {
	at := c.Mounts[i].Path
	for _, other := range []string{"/etc", "/dev", "/proc", "/sys"} {
		if container.Within(at, other) || container.Within(other, at) {
			return false
		}
	}
	for j, m := range c.Mounts {
		if i != j && container.Within(m.Path, at) {
			return false
		}
	}
	return at != "/" && !strings.HasPrefix(c.Cwd, at+"/") && !container.Within(c.TerminationMessagePath, at)
}
