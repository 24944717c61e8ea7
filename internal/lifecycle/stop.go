package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// stop ends the pod: app, init and ephemeral containers get their stop signal at once, sidecars in
// reverse order or when the grace is over; SIGKILL follows after grace and minimum. The sandbox is
// removed when no container is left.
func (d *decision) stop() {
	if d.seen.idle(d.plan) {
		d.removeSandbox()
		return
	}
	for i := range d.plan.Containers {
		d.stopContainer(&d.plan.Containers[i], true)
	}
	for i := range d.plan.Ephemeral {
		d.stopContainer(&d.plan.Ephemeral[i], true)
	}
	inits := d.plan.InitContainers
	turn := !d.seen.anyLive(d.plan.Containers)
	for i := len(inits) - 1; i >= 0; i-- {
		if !inits[i].Sidecar {
			d.stopContainer(&inits[i], true)
			continue
		}
		d.stopContainer(&inits[i], turn)
		turn = turn && !d.seen.container(inits[i].Name).live()
	}
}

// removeSandbox removes the sandbox, the last step of an ending.
func (d *decision) removeSandbox() {
	switch d.seen.Sandbox {
	case SandboxUp, SandboxBroken:
		d.do(RemoveSandbox, "", d.seen.Attempt)
	case SandboxNone, SandboxDown:
		d.Done = true
	}
}

// stopContainer issues the next stop action for a container of a pod that ends.
func (d *decision) stopContainer(c *pod.Container, turn bool) {
	d.end(c, d.seen.container(c.Name), turn)
}

// end ends the run of a container: its preStop hook, regardless of turn, then the stop signal
// when its turn has come, then SIGKILL. All steps share one grace, except the minimum after the
// stop signal (kubelet: killContainer in pkg/kubelet/kuberuntime).
func (d *decision) end(c *pod.Container, observed *Container, turn bool) {
	since, end := d.graceEnd(observed)
	switch {
	case !observed.live() || observed.KillIssued:
	case d.ending != nil && d.ending.AtOnce, observed.Kill != nil && observed.Kill.AtOnce:
		d.do(KillContainer, c.Name, observed.Attempt)
	case observed.State == RunStarting:
		// There is no process to signal yet: the signal follows once it runs. If the start hangs,
		// the grace still ends.
		d.killAt(c, observed, max(end, since+minimumGrace))
	case observed.StopIssued != nil:
		d.killAt(c, observed, max(end, *observed.StopIssued+minimumGrace))
	case d.now.Boot < end && !d.hook(c, observed, PreStop):
		d.wakeAt(end)
	case turn || d.now.Boot >= end:
		d.do(StopContainer, c.Name, observed.Attempt)
		d.wakeAt(max(end, d.now.Boot+minimumGrace))
	default:
		d.wakeAt(end)
	}
}

// killAt kills a container at a CLOCK_BOOTTIME, or waits for it.
func (d *decision) killAt(c *pod.Container, observed *Container, moment time.Duration) {
	if d.now.Boot < moment {
		d.wakeAt(moment)
		return
	}
	d.do(KillContainer, c.Name, observed.Attempt)
}
