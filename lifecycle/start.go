package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// startInits brings the pod's init containers forward and says whether the apps
// may start: one after another each runs to success, or, a sidecar, has started.
//
// As in the kubelet, only the last one that was ever begun (the front) holds
// back those behind it; a sidecar that dies later is restarted on the side, and
// holds back neither the init containers after it nor the apps.
func (d *decision) startInits() (initialized bool) {
	inits := d.plan.InitContainers
	front := d.front()
	for i := 0; i < front && i < len(inits); i++ {
		if inits[i].Sidecar {
			d.start(&inits[i], roleSidecar)
		}
	}
	if front == len(inits) {
		return true
	}
	d.start(&inits[front], initRole(&inits[front]))
	return false
}

// front is the index of the init container that all behind it wait for; their
// number, if there is none.
func (d *decision) front() int {
	inits := d.plan.InitContainers
	for i := range d.plan.Containers {
		if !d.seen.container(d.plan.Containers[i].Name).fresh() {
			return len(inits)
		}
	}
	for i := len(inits) - 1; i >= 0; i-- {
		c := d.seen.container(inits[i].Name)
		if c.fresh() {
			continue
		}
		if passed(&inits[i], initRole(&inits[i]), c) {
			return i + 1
		}
		return i
	}
	return 0
}

// passed says whether an init container lets the next one begin.
func passed(planned *pod.Container, r role, c *Container) bool {
	if r == roleSidecar {
		return started(planned, c)
	}
	return c.State == RunEnded && c.Renew == RenewNone && succeeded(r, c.End)
}

// startApps starts every app container that is to run and does not: all of them in
// one Decision, in parallel, but for two rules. One with a postStart hook holds back
// those behind it in the list until its hook is done, as in the kubelet. And of those
// that have never run, only those with the highest priority are started, until all
// with a higher one are ready or will never be (OpenKruise's launch priority).
func (d *decision) startApps() {
	priority, ordered := d.priority()
	for i := range d.plan.Containers {
		c := &d.plan.Containers[i]
		if ordered && c.Priority < priority && d.seen.container(c.Name).fresh() {
			continue
		}
		d.start(c, roleApp)
		if c.PostStart != nil && d.starting(c) {
			return
		}
	}
}

// starting says whether a container was told to start, perhaps just now, and its
// postStart hook has not succeeded: one that has failed ends it first.
func (d *decision) starting(c *pod.Container) bool {
	if n := len(d.Actions); n > 0 && d.Actions[n-1].Kind == StartContainer && d.Actions[n-1].Container == c.Name {
		return true
	}
	seen := d.seen.container(c.Name)
	return seen.live() && !up(c, seen)
}

// priority is the highest priority of the app containers that are not ready yet and
// may still become so. There is none when all are.
func (d *decision) priority() (highest int, ordered bool) {
	for i := range d.plan.Containers {
		c := &d.plan.Containers[i]
		seen := d.seen.container(c.Name)
		if !ready(c, roleApp, seen) && !finished(d.plan, c, roleApp, seen) && (!ordered || c.Priority > highest) {
			highest, ordered = c.Priority, true
		}
	}
	return highest, ordered
}

// makeAgain is how long after a container could not be made it is tried again,
// whatever the restart policy: it has not run (kubelet: backOffPeriod).
const makeAgain = 10 * time.Second

// neverMade says whether a start failed before there was a container: that is no
// run, has no exit code and counts as no restart.
func neverMade(reason string) bool {
	return reason == ReasonCreateError || reason == ReasonCreateConfigError
}

// start issues a container's next run, or waits for its back-off.
func (d *decision) start(c *pod.Container, r role) {
	seen := d.seen.container(c.Name)
	switch {
	case seen.State == RunNone:
		d.do(StartContainer, c.Name, 0)
	case seen.State == RunUnmade && d.now.Boot < seen.Ended+makeAgain:
		d.wakeAt(seen.Ended + makeAgain)
	case seen.State == RunUnmade:
		d.do(StartContainer, c.Name, seen.Attempt)
	case seen.live(), finished(d.plan, c, r, seen):
	case d.now.Boot < seen.restartAt():
		d.wakeAt(seen.restartAt())
	default:
		d.do(StartContainer, c.Name, seen.Attempt+1)
	}
}
