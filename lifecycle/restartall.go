package lifecycle

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/pod"
)

// FreshStart is the reason why a container starts in a new sandbox or as if for the first time. It is
// empty once the container has started again.
type FreshStart string

const (
	FreshNone         FreshStart = ""
	FreshInNewSandbox FreshStart = "sandbox" // in another sandbox: it runs again if it would in the same one
	FreshFromScratch  FreshStart = "reset"   // it runs as if for the first time, without a back-off
	FreshAsCause      FreshStart = "cause"   // as FreshFromScratch, but its own end was the cause: it has a back-off
)

// fresh reports whether a container has not started in this sandbox, or since all containers were
// restarted.
func (c *Container) fresh() bool { return c.State == RunNone || c.FreshStart != FreshNone }

// sandboxRetry is the delay after a sandbox other than the first could not be made. The first is tried
// once, because the command that starts the pod reports its failure (kubelet: backOffPeriod).
const sandboxRetry = 10 * time.Second

// The kubelet's reason and message for a container that was ended to restart all
// (pkg/kubelet/kubelet_pods.go).
const (
	reasonRestartingAll  = "RestartingAllContainers"
	messageRestartingAll = "The container is removed because RestartAllContainers in place"
)

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
		o.Ending, o.Sandbox = o.teardownOfLostSandbox(e), SandboxDown
	case o.Sandbox == SandboxUp:
		if o.Ending == nil && !o.mayRecreateSandbox(plan) {
			o.Ending = o.teardownOfLostSandbox(e)
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
		o.Ending = o.teardownOfLostSandbox(e)
	}
	for _, list := range plan.All() {
		for i := range list {
			if c := o.container(list[i].Name); c.live() {
				c.applyEvent(Event{At: e.At, Kind: Exited, ExitCode: 137, Reason: reasonUnknown, Message: "the pod's sandbox is gone"})
			}
		}
	}
	o.sandboxRemoved(plan)
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
		if c.State != RunNone && c.State != RunUnmade {
			return false
		}
	}
	return true
}

// markFresh marks containers that have started, so that they start again.
func (o *Observed) markFresh(list []pod.Container, how FreshStart) {
	for i := range list {
		c, ok := o.Containers[list[i].Name]
		if ok && c.State != RunNone && (c.FreshStart == FreshNone || c.FreshStart == FreshInNewSandbox) {
			c.FreshStart = how
		}
	}
}

// restartAll applies the end of a container's run that restarts the whole pod (the action
// RestartAllContainers of its rules; kubelet: ShouldAllContainersRestart in pkg/kubelet/container,
// and SyncPod). The other containers are killed without a grace and without their hooks. Nothing
// starts until all are gone.
//
// The kubelet has no back-off here and relies on the seconds between two syncs of a pod. podrun
// reacts at once, so the container that caused the restart waits as after any other end.
func (o *Observed) restartAll(plan *pod.Plan, c *Container, e Event) {
	planned, ok := plan.Container(e.Container)
	if !ok || o.Ending != nil || o.Restarting || c.State != RunEnded || c.FreshStart != FreshNone || !restartsAll(planned, c) {
		return
	}
	c.FreshStart = FreshAsCause
	o.markFresh(plan.InitContainers, FreshFromScratch)
	o.markFresh(plan.Containers, FreshFromScratch)
	o.Restarting = true
	o.killAll(plan, e.At, KillRestartAll)
}

// restartsAll reports whether the end of a container's latest run restarts all.
func restartsAll(planned *pod.Container, c *Container) bool {
	if c.Kill != nil && (c.Kill.Why == KillRestartAll || c.Kill.Why == KillSandbox) {
		return false
	}
	rule, ok := matchingRule(planned.RestartRules, c.End.ExitCode)
	return ok && rule.All
}

// killAll ends every run at once.
func (o *Observed) killAll(plan *pod.Plan, at Now, why KillReason) {
	for _, list := range [][]pod.Container{plan.Containers, plan.InitContainers, plan.Ephemeral} {
		for i := range list {
			if c := o.container(list[i].Name); c.live() {
				c.Kill = &Kill{Why: why, Since: at, GraceEnd: at.Boot, AtOnce: true}
				o.note(at, pod.Normal, eventKilling, list[i].Name, fmt.Sprintf("Container %s is killed, %s", list[i].Name, killingAll[why]))
			}
		}
	}
}

var killingAll = map[KillReason]string{
	KillRestartAll: "all containers of the pod will be restarted",
	KillSandbox:    "the pod's sandbox will be recreated",
}

// endRestartAll ends the restart of all containers when the last has ended.
func (o *Observed) endRestartAll(plan *pod.Plan) {
	o.Restarting = o.Restarting && o.Ending == nil && !o.idle(plan)
}

// canRestartAll reports whether a rule of the plan restarts all containers (kubelet:
// AllContainersCouldRestart).
func canRestartAll(plan *pod.Plan) bool {
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			for _, r := range list[i].RestartRules {
				if r.All {
					return true
				}
			}
		}
	}
	return false
}

// restartingCondition follows GenerateAllContainersRestartingCondition in pkg/kubelet/status.
func restartingCondition(o *Observed, p pod.Phase) pod.Condition {
	c := pod.Condition{Type: allRestarting, Status: isFalse}
	switch {
	case p == pod.Succeeded:
		c.Reason = "PodCompleted"
	case p == pod.Failed:
		c.Reason = "PodFailed"
	case o.Restarting:
		c.Status, c.Reason, c.Message = isTrue, "RestartAllContainersStarted", "container exited with restart policy rule"
	}
	return c
}

// restoreRun applies the latest run of a container that the disk records from before a reboot: the run has
// ended, and there was a sandbox.
func (o *Observed) restoreRun(plan *pod.Plan, e Event) {
	if _, ok := plan.Container(e.Container); !ok || o.Containers[e.Container] != nil || o.Ending != nil {
		return
	}
	if o.Sandbox == SandboxNone {
		o.Sandbox = SandboxUp
	}
	if o.Containers == nil {
		o.Containers = map[string]*Container{}
	}
	end := exited(e)
	end.FinishedAt = e.At.Wall
	o.Containers[e.Container] = &Container{State: RunEnded, Attempt: max(e.Attempt, 0), Issued: e.At, Ended: e.At.Boot, End: &end}
}

// Done returns the containers of a continuing pod that have run and do not run again.
func Done(plan *pod.Plan, o *Observed) (names []string) {
	if o.Ending != nil {
		return nil
	}
	for i := range plan.Containers {
		c := &plan.Containers[i]
		if finished(plan, c, roleApp, o.container(c.Name)) {
			names = append(names, c.Name)
		}
	}
	return names
}

// endOutdatedRuns ends the runs of app containers and sidecars that have another revision in the changed
// plan. A plain init container uses the new revision in its next run, if there is one (kubelet:
// computePodActions). A new definition starts without a back-off.
func (o *Observed) endOutdatedRuns(plan *pod.Plan, at Now) {
	if o.Ending != nil {
		return
	}
	for n, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			planned := &list[i]
			c, ok := o.Containers[planned.Name]
			if !ok || !c.outdated(planned) || n == 0 && !planned.Sidecar {
				continue
			}
			c.Backoff = 0
			if !c.live() || c.Kill != nil {
				continue
			}
			c.Kill = &Kill{Why: KillReplaced, Since: at, GraceEnd: at.Boot + grace(plan.GraceSeconds)}
			why := "definition changed" // the kubelet's message
			if planned.RestartRequested {
				why = "restart requested"
			}
			o.note(at, pod.Normal, eventKilling, planned.Name, fmt.Sprintf("Container %s %s, will be restarted", planned.Name, why))
		}
	}
}

// outdated reports whether the latest run has another revision than the plan.
func (c *Container) outdated(planned *pod.Container) bool { return c.Revision != planned.Revision }
