package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

// The kubelet's crash-loop back-off (its flowcontrol.Backoff with 10 s and
// 300 s): the first restart is immediate, each later one waits twice as long as
// the one before, counted from the end of the run; a run that ends more than
// twice the maximum after its restart was stable, and the series begins anew.
const (
	backoffBase  = 10 * time.Second
	backoffMax   = 300 * time.Second
	backoffReset = 2 * backoffMax
)

// delay is how long after the end of the latest run the next has to wait.
// Exit 0 waits like any other: what counts is the restart.
func (c *Container) delay() time.Duration {
	if c.Renew == RenewAnew || c.Ended-c.Issued.Boot > backoffReset {
		return 0
	}
	return c.Backoff
}

// nextBackoff is the back-off that the next restart leaves behind.
func (c *Container) nextBackoff() time.Duration {
	if d := c.delay(); d > 0 {
		return min(2*d, backoffMax)
	}
	return backoffBase
}

// restartAt is the Boot time of the next run, after one that ended.
func (c *Container) restartAt() time.Duration { return c.Ended + c.delay() }

// backoffMessage is the kubelet's, word for word.
func backoffMessage(plan *pod.Plan, name string, delay time.Duration) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		delay, name, plan.Name, plan.Namespace, plan.UID)
}
