package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

const (
	reasonOOMKilled = "OOMKilled"
	reasonUnknown   = "ContainerStatusUnknown"
)

// role selects the rules for a container.
type role int

const (
	roleInit    role = iota // runs to success before the next starts
	roleSidecar             // an init container that keeps running
	roleApp
)

// initRole distinguishes a sidecar from a plain init container.
func initRole(c *pod.Container) role {
	if c.Sidecar {
		return roleSidecar
	}
	return roleInit
}

// succeeded reports whether a run succeeded. An init container with a child that the OOM killer
// killed has failed, as in the kubelet, even if its own process ended well.
func succeeded(r role, t *pod.Terminated) bool {
	return t.ExitCode == 0 && (r != roleInit || t.Reason != reasonOOMKilled)
}

// restarts reports whether another run would follow the latest run, which has ended, if the pod
// continued: always for a sidecar; until success for an init container, unless the policy is Never or
// MaxRestarts is reached;
// by the first rule that names its exit code, else by the policy, for an app container. A
// container's own policy takes precedence over the pod's. The exit code is ignored for a run that
// was ended because a probe failed.
func restarts(plan *pod.Plan, planned *pod.Container, r role, c *Container) bool {
	policy := cmp.Or(planned.RestartPolicy, plan.RestartPolicy)
	switch {
	case r == roleSidecar, c.FreshStart == FreshFromScratch, c.FreshStart == FreshAsCause, c.Kill != nil && c.Kill.Why == KillReplaced:
		return true
	case c.Kill != nil && c.Kill.Why != KillPostStart:
		return policy != pod.RestartNever
	case r == roleInit && succeeded(r, c.End):
		return false
	case matchesRule(planned.RestartRules, c.End.ExitCode):
		return true
	case policy == pod.RestartNever:
		return false
	case policy == pod.RestartAlways && r == roleApp:
		return true
	default:
		limited := planned.MaxRestarts > 0 && policy == pod.RestartOnFailure
		return !succeeded(r, c.End) && (!limited || c.Attempt < planned.MaxRestarts)
	}
}

// matchingRule returns the first rule that matches an exit code, if any.
func matchingRule(rules []pod.RestartRule, code int) (pod.RestartRule, bool) {
	for _, r := range rules {
		if slices.Contains(r.ExitCodes, code) != r.NotIn {
			return r, true
		}
	}
	return pod.RestartRule{}, false
}

func matchesRule(rules []pod.RestartRule, code int) bool {
	_, ok := matchingRule(rules, code)
	return ok
}

// finished reports whether the container's latest run ended and was its last.
func finished(plan *pod.Plan, planned *pod.Container, r role, c *Container) bool {
	return c.State == RunEnded && !restarts(plan, planned, r, c)
}

// The kubelet's crash-loop back-off (its flowcontrol.Backoff with 10 s and 300 s): the first
// restart is immediate, each later one waits twice as long as the previous one, counted from the
// end of the run. A run that ends more than twice the maximum after its restart was stable and
// resets the series.
const (
	backoffBase  = 10 * time.Second
	backoffMax   = 300 * time.Second
	backoffReset = 2 * backoffMax
)

// delay returns the wait between the end of the latest run and the next run. Exit 0 waits like any
// other: only the restart counts.
func (c *Container) delay() time.Duration {
	if c.FreshStart == FreshFromScratch || c.FreshStart == FreshAfterLoss || c.Ended-c.Issued.Boot > backoffReset {
		return 0
	}
	return c.Backoff
}

// nextBackoff returns the back-off that the next restart sets.
func (c *Container) nextBackoff() time.Duration {
	if d := c.delay(); d > 0 {
		return min(2*d, backoffMax)
	}
	return backoffBase
}

// restartAt returns the CLOCK_BOOTTIME of the next run, after one that ended.
func (c *Container) restartAt() time.Duration { return c.Ended + c.delay() }

// backoffMessage returns the kubelet's message, word for word.
func backoffMessage(plan *pod.Plan, name string, delay time.Duration) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		delay, name, plan.Name, plan.Namespace, plan.UID)
}
