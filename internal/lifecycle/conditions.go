package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Transition is a condition's status and the time of its last change.
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
	allRestarting   = "AllContainersRestarting" // only if a rule can restart all containers
)

const (
	isTrue  = "True"
	isFalse = "False"
)

// conditions returns the kubelet's conditions in its order, without times.
func conditions(plan *pod.Plan, o *Observed, p pod.Phase) []pod.Condition {
	all := readiness(plan, o, p)
	list := []pod.Condition{
		sandboxCondition(o),
		initializedCondition(plan, o, p),
		named(podReady, podReadiness(plan, o, all)),
		named(containersReady, all),
		{Type: podScheduled, Status: isTrue},
	}
	if canRestartAll(plan) {
		list = append(list, restartingCondition(o, p))
	}
	return append(list, o.Gates...)
}

// PendingConditions returns the conditions of a pod that has no sandbox yet.
func PendingConditions(plan *pod.Plan, now time.Time) []pod.Condition {
	list := conditions(plan, &Observed{}, pod.Pending)
	for i := range list {
		list[i].LastTransition = now
	}
	return list
}

// OwnCondition reports whether podrun itself sets a condition type. Users cannot set such a type.
func OwnCondition(kind string) bool {
	switch kind {
	case readyToStart, initialized, podReady, containersReady, podScheduled, allRestarting:
		return true
	}
	return false
}

// podReadiness returns the readiness of the pod: of its containers, then of its readiness gates (kubelet:
// GeneratePodReadyCondition in pkg/kubelet/status).
func podReadiness(plan *pod.Plan, o *Observed, all pod.Condition) pod.Condition {
	if all.Status != isTrue {
		return all
	}
	var closed []string
	for _, kind := range plan.ReadinessGates {
		switch i := o.gate(kind); {
		case i < 0:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", kind))
		case o.Gates[i].Status != isTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %s", kind, o.Gates[i].Status))
		}
	}
	if closed == nil {
		return all
	}
	return pod.Condition{Status: isFalse, Reason: "ReadinessGatesNotReady", Message: strings.Join(closed, ", ")}
}

// gate returns the index of a condition that a user has set.
func (o *Observed) gate(kind string) int {
	return slices.IndexFunc(o.Gates, func(c pod.Condition) bool { return c.Type == kind })
}

// setCondition applies a condition set by a user.
func (o *Observed) setCondition(e Event) {
	if e.Condition == "" || OwnCondition(e.Condition) {
		return
	}
	c := pod.Condition{Type: e.Condition, Status: e.Status, Reason: e.Reason, Message: e.Message}
	if i := o.gate(e.Condition); i >= 0 {
		o.Gates[i] = c
	} else {
		o.Gates = append(o.Gates, c)
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
	case SandboxDown, SandboxBroken:
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
	if o.Pause.mayBeFrozen() {
		return pod.Condition{Status: isFalse, Reason: pod.ReasonPaused, Message: "the pod is paused"}
	}
	var unready []string
	for i := range plan.InitContainers {
		if c := &plan.InitContainers[i]; c.Sidecar && !ready(c, roleSidecar, o.container(c.Name)) {
			unready = append(unready, c.Name)
		}
	}
	for i := range plan.Containers {
		if c := &plan.Containers[i]; !ready(c, roleApp, o.container(c.Name)) {
			unready = append(unready, c.Name)
		}
	}
	if unready == nil {
		return pod.Condition{Status: isTrue}
	}
	return pod.Condition{Status: isFalse, Reason: "ContainersNotReady",
		Message: fmt.Sprintf("containers with unready status: %s", unready)}
}

// initializedCondition returns the Initialized condition. It never becomes False again, even if a
// sidecar dies later. An app container that has run also makes it True.
func initializedCondition(plan *pod.Plan, o *Observed, p pod.Phase) pod.Condition {
	if p == pod.Succeeded {
		return pod.Condition{Type: initialized, Status: isTrue, Reason: "PodCompleted"}
	}
	done := o.initialized()
	for i := range plan.Containers {
		c := o.container(plan.Containers[i].Name)
		done = done || c.State == RunRunning || c.End != nil
	}
	var incomplete []string
	for i := range plan.InitContainers {
		if c := &plan.InitContainers[i]; !letsNextStart(c, initRole(c), o.container(c.Name)) {
			incomplete = append(incomplete, c.Name)
		}
	}
	if done || incomplete == nil {
		return pod.Condition{Type: initialized, Status: isTrue}
	}
	return pod.Condition{Type: initialized, Status: isFalse, Reason: "ContainersNotInitialized",
		Message: fmt.Sprintf("containers with incomplete status: %s", incomplete)}
}

// initialized reports whether the pod has been initialized before.
func (o *Observed) initialized() bool {
	before, _ := o.transition(initialized)
	return before.Status == isTrue
}

func (o *Observed) transition(kind string) (Transition, bool) {
	for _, t := range o.Conditions {
		if t.Type == kind {
			return t, true
		}
	}
	return Transition{}, false
}

// noteConditions records which conditions an event has changed.
func (o *Observed) noteConditions(plan *pod.Plan, now Now) {
	o.Conditions = transitions(o.conditionsWithTimes(plan, now))
}

func transitions(list []pod.Condition) []Transition {
	out := make([]Transition, len(list))
	for i, c := range list {
		out[i] = Transition{Type: c.Type, Status: c.Status, Since: c.LastTransition}
	}
	return out
}

// conditionsWithTimes returns the conditions with their times. A condition changed by no event since (because a
// deadline has passed) changes now.
func (o *Observed) conditionsWithTimes(plan *pod.Plan, now Now) []pod.Condition {
	list := conditions(plan, o, phase(plan, o, o.currentEnding(plan, now)))
	for i := range list {
		list[i].LastTransition = now.Wall
		if t, ok := o.transition(list[i].Type); ok && t.Status == list[i].Status {
			list[i].LastTransition = t.Since
		}
	}
	return list
}

// isRunning reports whether the status shows a container as running: its process runs and its postStart
// hook has succeeded. Before that the kubelet shows it as being created.
func isRunning(planned *pod.Container, c *Container) bool {
	return c.State == RunRunning && (planned.PostStart == nil || c.PostStart.Outcome == Success)
}

// started reports whether a container counts as started: it is up and its startup probe, if any,
// has succeeded (kubelet: isContainerStarted in pkg/kubelet/prober).
func started(planned *pod.Container, c *Container) bool {
	return isRunning(planned, c) && (planned.Startup == nil || c.Startup.Result == Success)
}

// ready reports whether a container counts as ready. An init container is ready after it has
// succeeded. Any other container is ready when it is started and its readiness probe, if any,
// succeeds.
func ready(planned *pod.Container, r role, c *Container) bool {
	if r == roleInit {
		return letsNextStart(planned, r, c)
	}
	return started(planned, c) && (planned.Readiness == nil || c.Readiness.Result == Success)
}
