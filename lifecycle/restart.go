package lifecycle

import "github.com/podrun/podrun/pod"

const reasonOOMKilled = "OOMKilled"

// role is which rules a container lives by.
type role int

const (
	roleInit    role = iota // runs to success before the next
	roleSidecar             // an init container that stays
	roleApp
)

// initRole tells a sidecar from a plain init container.
func initRole(c *pod.Container) role {
	if c.Sidecar {
		return roleSidecar
	}
	return roleInit
}

// succeeded says whether a run did what was wanted of it. Of an init container
// whose process was spared by the OOM killer while a child was not, the kubelet
// says no.
func succeeded(r role, t *pod.Terminated) bool {
	return t.ExitCode == 0 && (r != roleInit || t.Reason != reasonOOMKilled)
}

// restarts says whether a run that ended is to be followed by another, were the
// pod to go on: a sidecar's always, an init container's until it succeeds unless
// the policy is Never, an app container's by the policy.
func restarts(plan *pod.Plan, r role, t *pod.Terminated) bool {
	switch {
	case r == roleSidecar:
		return true
	case plan.RestartPolicy == pod.RestartNever:
		return false
	case plan.RestartPolicy == pod.RestartAlways && r == roleApp:
		return true
	default:
		return !succeeded(r, t)
	}
}

// finished says whether the container's latest run ended and was its last.
func finished(plan *pod.Plan, r role, c *Container) bool {
	return c.State == RunEnded && !restarts(plan, r, c.End)
}
