package lifecycle

import (
	"fmt"

	"github.com/podrun/podrun/internal/pod"
)

// FreshStart is the reason why a container starts in a new sandbox or as if for the first time. It is
// empty once the container has started again.
type FreshStart string

const (
	FreshNone         FreshStart = ""
	FreshInNewSandbox FreshStart = "sandbox" // in another sandbox: it runs again if it would in the same one
	FreshAfterLoss    FreshStart = "loss"    // the same, without a back-off: it ended with the sandbox
	FreshFromScratch  FreshStart = "reset"   // it runs as if for the first time, without a back-off
	FreshAsCause      FreshStart = "cause"   // as FreshFromScratch, but its own end was the cause: it has a back-off
)

// fresh reports whether a container has not started in this sandbox, or since all containers were
// restarted.
func (c *Container) fresh() bool { return c.State == RunNone || c.FreshStart != FreshNone }

// The kubelet's reason and message for a container that was ended to restart all
// (pkg/kubelet/kubelet_pods.go).
const (
	reasonRestartingAll  = "RestartingAllContainers"
	messageRestartingAll = "The container is removed because RestartAllContainers in place"
)

// markFresh marks containers that have started, so that they start again.
func (o *Observed) markFresh(list []pod.Container, how FreshStart) {
	for i := range list {
		c, ok := o.Containers[list[i].Name]
		weaker := ok && (c.FreshStart == FreshNone || c.FreshStart == FreshInNewSandbox || c.FreshStart == FreshAfterLoss && how == FreshFromScratch)
		if weaker && c.State != RunNone {
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
func (o *Observed) killAll(plan *pod.Plan, now Now, reason KillReason) {
	for _, list := range [][]pod.Container{plan.Containers, plan.InitContainers, plan.Ephemeral} {
		for i := range list {
			if c := o.container(list[i].Name); c.live() {
				c.Kill = &Kill{Why: reason, Since: now, GraceEnd: now.Boot, AtOnce: true}
				o.note(now, pod.Normal, eventKilling, list[i].Name, fmt.Sprintf("Container %s is killed, %s", list[i].Name, killingAll[reason]))
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
