package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// startInits starts the pod's init containers and reports whether the apps may start: one after
// another, each runs to success or, for a sidecar, has started.
//
// As in the kubelet, only the last one ever issued (see firstBlockingInit) blocks those after it. A sidecar
// that dies later restarts independently, and blocks neither the init containers after it nor the
// apps.
func (d *decision) startInits() (initialized bool) {
	inits := d.plan.InitContainers
	blocking := d.firstBlockingInit()
	for i := 0; i < blocking && i < len(inits); i++ {
		if inits[i].Sidecar {
			d.start(&inits[i], roleSidecar)
		}
	}
	if blocking == len(inits) {
		return true
	}
	d.start(&inits[blocking], initRole(&inits[blocking]))
	return false
}

// firstBlockingInit returns the index of the init container that blocks all after it, or the number of init
// containers if there is none.
func (d *decision) firstBlockingInit() int {
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
		if letsNextStart(&inits[i], initRole(&inits[i]), c) {
			return i + 1
		}
		return i
	}
	return 0
}

// letsNextStart reports whether an init container lets the next one start.
func letsNextStart(planned *pod.Container, r role, c *Container) bool {
	if r == roleSidecar {
		return started(planned, c)
	}
	return c.State == RunEnded && c.FreshStart == FreshNone && succeeded(r, c.End)
}

// startApps starts every app container that should run and does not: all in one Decision, in
// parallel, with two exceptions. One with a postStart hook blocks those after it in the list until
// its hook is done, as in the kubelet. Of those that have never run, only those with the highest
// priority start, until all with a higher one are ready or can never be (OpenKruise's launch
// priority).
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

// starting reports whether a container's start was issued, perhaps in this decision, and its
// postStart hook has not succeeded yet. A failed hook ends the container first.
func (d *decision) starting(c *pod.Container) bool {
	if n := len(d.Actions); n > 0 && d.Actions[n-1].Kind == StartContainer && d.Actions[n-1].Container == c.Name {
		return true
	}
	observed := d.seen.container(c.Name)
	return observed.live() && !isRunning(c, observed)
}

// priority returns the highest priority of the app containers that are not ready and may still
// become so; ordered is false if all are ready.
func (d *decision) priority() (highest int, ordered bool) {
	for i := range d.plan.Containers {
		c := &d.plan.Containers[i]
		observed := d.seen.container(c.Name)
		if !ready(c, roleApp, observed) && !finished(d.plan, c, roleApp, observed) && (!ordered || c.Priority > highest) {
			highest, ordered = c.Priority, true
		}
	}
	return highest, ordered
}

// createRetry is the delay before podrun tries again to make a container, whatever the restart
// policy: it has not run (kubelet: backOffPeriod).
const createRetry = 10 * time.Second

// neverMade reports whether a start failed before the container existed: that is no run, has no
// exit code and counts as no restart.
func neverMade(reason string) bool {
	return reason == ReasonCreateError || reason == ReasonCreateConfigError
}

// start issues a container's next run, or waits for its back-off.
func (d *decision) start(c *pod.Container, r role) {
	observed := d.seen.container(c.Name)
	switch {
	case observed.State == RunNone:
		d.do(StartContainer, c.Name, 0)
	case observed.State == RunNotCreated && d.now.Boot < observed.Ended+createRetry:
		d.wakeAt(observed.Ended + createRetry)
	case observed.State == RunNotCreated:
		d.do(StartContainer, c.Name, observed.Attempt)
	case observed.live(), finished(d.plan, c, r, observed):
	case d.now.Boot < observed.restartAt():
		d.wakeAt(observed.restartAt())
	default:
		d.do(StartContainer, c.Name, observed.Attempt+1)
	}
}
