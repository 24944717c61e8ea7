package lifecycle

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/pod"
)

// Transition is a condition's status and when it came to be.
type Transition struct {
	Type   string    `json:"type"`
	Status string    `json:"status"`
	Since  time.Time `json:"since"`
}

// The kubelet's pod conditions.
const (
	readyToStart    = "PodReadyToStartContainers"
	initialized     = "Initialized"
	podReady        = "Ready"
	containersReady = "ContainersReady"
	podScheduled    = "PodScheduled"
)

const (
	isTrue  = "True"
	isFalse = "False"
)

// conditions are the kubelet's, in its order, still without their times.
func conditions(plan *pod.Plan, o *Observed, p pod.Phase) []pod.Condition {
	all := readiness(plan, o, p)
	return []pod.Condition{
		sandboxCondition(o),
		initializedCondition(plan, o, p),
		named(podReady, all), // readiness gates would come in here
		named(containersReady, all),
		{Type: podScheduled, Status: isTrue},
	}
}

func named(kind string, c pod.Condition) pod.Condition {
	c.Type = kind
	return c
}

func sandboxCondition(o *Observed) pod.Condition {
	switch o.Sandbox {
	case SandboxUp, SandboxRemoving:
		return pod.Condition{Type: readyToStart, Status: isTrue}
	case SandboxDown:
		return pod.Condition{Type: readyToStart, Status: isFalse,
			Reason: "PodSandboxNotReady", Message: "pod sandbox is not ready"}
	default:
		return pod.Condition{Type: readyToStart, Status: isFalse,
			Reason: "PodSandboxNotReady", Message: "no pod sandbox exists"}
	}
}

// readiness is True when every app and every sidecar is ready.
func readiness(plan *pod.Plan, o *Observed, p pod.Phase) pod.Condition {
	switch p {
	case pod.Succeeded:
		return pod.Condition{Status: isFalse, Reason: "PodCompleted"}
	case pod.Failed:
		return pod.Condition{Status: isFalse, Reason: "PodFailed"}
	}
	var unready []string
	for i := range plan.InitContainers {
		if c := &plan.InitContainers[i]; c.Sidecar && !ready(roleSidecar, o.container(c.Name)) {
			unready = append(unready, c.Name)
		}
	}
	for i := range plan.Containers {
		if c := &plan.Containers[i]; !ready(roleApp, o.container(c.Name)) {
			unready = append(unready, c.Name)
		}
	}
	if unready == nil {
		return pod.Condition{Status: isTrue}
	}
	return pod.Condition{Status: isFalse, Reason: "ContainersNotReady",
		Message: fmt.Sprintf("containers with unready status: %s", unready)}
}

// initializedCondition never goes back: a sidecar that dies later changes nothing.
// An app that has run proves it, too.
func initializedCondition(plan *pod.Plan, o *Observed, p pod.Phase) pod.Condition {
	if p == pod.Succeeded {
		return pod.Condition{Type: initialized, Status: isTrue, Reason: "PodCompleted"}
	}
	before, _ := o.transition(initialized)
	done := before.Status == isTrue
	for i := range plan.Containers {
		c := o.container(plan.Containers[i].Name)
		done = done || c.State == RunRunning || c.End != nil
	}
	var incomplete []string
	for i := range plan.InitContainers {
		if c := &plan.InitContainers[i]; !passed(initRole(c), o.container(c.Name)) {
			incomplete = append(incomplete, c.Name)
		}
	}
	if done || incomplete == nil {
		return pod.Condition{Type: initialized, Status: isTrue}
	}
	return pod.Condition{Type: initialized, Status: isFalse, Reason: "ContainersNotInitialized",
		Message: fmt.Sprintf("containers with incomplete status: %s", incomplete)}
}

func (o *Observed) transition(kind string) (Transition, bool) {
	for _, t := range o.Conditions {
		if t.Type == kind {
			return t, true
		}
	}
	return Transition{}, false
}

// noteConditions remembers which conditions an event has changed.
func (o *Observed) noteConditions(plan *pod.Plan, at Now) {
	o.Conditions = transitions(o.timed(plan, at))
}

func transitions(list []pod.Condition) []Transition {
	out := make([]Transition, len(list))
	for i, c := range list {
		out[i] = Transition{Type: c.Type, Status: c.Status, Since: c.LastTransition}
	}
	return out
}

// timed are the conditions at a time. One that no event has changed since (a
// deadline has passed) changes now.
func (o *Observed) timed(plan *pod.Plan, now Now) []pod.Condition {
	list := conditions(plan, o, phase(plan, o, o.ending(plan, now)))
	for i := range list {
		list[i].LastTransition = now.Wall
		if t, ok := o.transition(list[i].Type); ok && t.Status == list[i].Status {
			list[i].LastTransition = t.Since
		}
	}
	return list
}
