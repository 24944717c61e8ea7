package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// sandboxRetry is the delay after a sandbox other than the first could not be made. The first is tried
// once, because the command that starts the pod reports its failure (kubelet: backOffPeriod).
const sandboxRetry = 10 * time.Second

// sandboxEvent applies an event of the sandbox. Containers cannot outlive it.
func (o *Observed) sandboxEvent(plan *pod.Plan, e Event) {
	switch {
	case e.Kind == SandboxReady && o.Sandbox == SandboxCreating:
		o.Sandbox, o.VolumeFailures = SandboxUp, 0
	case e.Kind == SandboxFailed:
		o.sandboxFailed(plan, e)
	case e.Kind == SandboxKilled:
		o.sandboxKilled(plan, e)
	case e.Kind == SandboxRemoved:
		o.sandboxRemoved(plan)
	}
}

// sandboxFailed applies the event that the sandbox could not be made, or is unusable.
func (o *Observed) sandboxFailed(plan *pod.Plan, e Event) {
	switch {
	case o.Ending != nil && o.Sandbox == SandboxCreating:
		o.Sandbox = SandboxDown
	case o.Sandbox == SandboxCreating && o.Attempt > 0:
		o.Sandbox, o.Retry = SandboxNone, e.At.Boot+sandboxRetry
	case o.Sandbox == SandboxCreating:
		o.Ending, o.Sandbox = o.endingOfLostSandbox(e), SandboxDown
	case o.Sandbox == SandboxUp:
		if o.Ending == nil && !o.mayRecreateSandbox(plan) {
			o.Ending = o.endingOfLostSandbox(e)
			o.Ending.AtOnce = true
		}
		o.Sandbox = SandboxBroken
		if o.Ending == nil {
			o.killAll(plan, e.At, KillSandbox)
		}
	}
}

// sandboxKilled applies the event that the sandbox is gone with all processes in it.
func (o *Observed) sandboxKilled(plan *pod.Plan, e Event) {
	if o.Sandbox == SandboxNone || o.Sandbox == SandboxDown {
		return
	}
	recreate := o.mayRecreateSandbox(plan)
	if o.Ending == nil && !recreate {
		o.Ending = o.endingOfLostSandbox(e)
	}
	for _, list := range plan.All() {
		for i := range list {
			if c := o.container(list[i].Name); c.live() {
				c.applyEvent(Event{At: e.At, Kind: Exited, ExitCode: 137, Reason: reasonUnknown, Message: lostMessage(e)})
				if c.FreshStart == FreshNone {
					c.FreshStart = FreshAfterLoss // it did not crash
				}
			}
		}
	}
	o.sandboxRemoved(plan)
}

// lostMessage returns the message of a container that ended with the sandbox.
func lostMessage(e Event) string {
	if e.Message == "" {
		return "the pod's sandbox is gone"
	}
	return "the pod's sandbox is gone: " + e.Message
}

// sandboxRemoved applies the removal of the sandbox. A pod that continues gets another.
func (o *Observed) sandboxRemoved(plan *pod.Plan) {
	if o.Sandbox == SandboxNone || o.Sandbox == SandboxDown {
		return
	}
	o.Sandbox, o.Restarting = SandboxDown, false
	o.Pause = Pause{}
	if o.Ending != nil {
		return
	}
	o.Sandbox = SandboxNone
	o.Attempt++
	o.markFresh(plan.InitContainers, FreshFromScratch)
	o.markFresh(plan.Containers, FreshInNewSandbox)
}

// mayRecreateSandbox reports whether the kubelet makes another sandbox after one has died: not under policy
// Never once a container was made (computePodActions in pkg/kubelet/kuberuntime).
func (o *Observed) mayRecreateSandbox(plan *pod.Plan) bool {
	if plan.RestartPolicy != pod.RestartNever {
		return true
	}
	for _, c := range o.Containers {
		if c.State != RunNone && c.State != RunNotCreated {
			return false
		}
	}
	return true
}
