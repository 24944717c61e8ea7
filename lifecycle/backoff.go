package lifecycle

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/pod"
)

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
