package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podrun/podrun/pod"
)

const (
	reasonOOMKilled = "OOMKilled"
	reasonUnknown   = "ContainerStatusUnknown"
)

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

// restarts says whether the latest run, which has ended, is to be followed by another,
// were the pod to go on: a sidecar's always, an init container's until it succeeds
// unless the policy is Never, an app container's by the first rule that names its exit
// code, else by the policy. A container's own policy counts before the pod's. Of a run
// that was ended because a probe failed the exit code says nothing.
func restarts(plan *pod.Plan, planned *pod.Container, r role, c *Container) bool {
	policy := cmp.Or(planned.RestartPolicy, plan.RestartPolicy)
	switch {
	case r == roleSidecar, c.Renew == RenewAnew, c.Renew == RenewCause, c.Kill != nil && c.Kill.Why == KillReplaced:
		return true
	case c.Kill != nil && c.Kill.Why != KillPostStart:
		return policy != pod.RestartNever
	case r == roleInit && succeeded(r, c.End):
		return false
	case isRuled(planned.RestartRules, c.End.ExitCode):
		return true
	case policy == pod.RestartNever:
		return false
	case policy == pod.RestartAlways && r == roleApp:
		return true
	default:
		return !succeeded(r, c.End)
	}
}

// ruled is the first rule that speaks of an exit code, if there is one.
func ruled(rules []pod.RestartRule, code int) (pod.RestartRule, bool) {
	for _, r := range rules {
		if slices.Contains(r.ExitCodes, code) != r.NotIn {
			return r, true
		}
	}
	return pod.RestartRule{}, false
}

func isRuled(rules []pod.RestartRule, code int) bool {
	_, ok := ruled(rules, code)
	return ok
}

// finished says whether the container's latest run ended and was its last.
func finished(plan *pod.Plan, planned *pod.Container, r role, c *Container) bool {
	return c.State == RunEnded && !restarts(plan, planned, r, c)
}
