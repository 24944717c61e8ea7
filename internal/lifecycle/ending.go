package lifecycle

import (
	"math"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Cause is the reason why a pod ends. The first cause stays.
type Cause string

const (
	EndRequested  Cause = "requested"  // by the user
	EndDeadline   Cause = "deadline"   // activeDeadlineSeconds have passed
	EndInitFailed Cause = "initFailed" // an init container failed under policy Never
	EndCompleted  Cause = "completed"  // no app container runs or will run again
	EndLost       Cause = "lost"       // the sandbox could not be made, or died and is not replaced
	EndShutdown   Cause = "shutdown"   // with the machine; the pod starts again with it
	EndEvicted    Cause = "evicted"    // it exceeds a limit on disk use, or the node is low on a resource
)

// minimumGrace is the time that every container has between its stop signal and SIGKILL, even if
// less is left of the pod's grace (the kubelet's minimumGracePeriodInSeconds).
const minimumGrace = 2 * time.Second

// Ending is the one teardown of a pod. Once it is set, no container starts.
type Ending struct {
	Cause    Cause         `json:"cause"`
	Since    Now           `json:"since"`
	GraceEnd time.Duration `json:"graceEnd"`          // CLOCK_BOOTTIME at which the grace is used up
	AtOnce   bool          `json:"atOnce,omitempty"`  // the requested grace was 0: SIGKILL without a stop signal
	Reason   string        `json:"reason,omitempty"`  // the pod's reason, if the cause gives one
	Message  string        `json:"message,omitempty"` // the pod's message, if the cause gives one
}

// newEnding returns an ending with the plan's grace.
func newEnding(plan *pod.Plan, cause Cause, now Now) *Ending {
	return &Ending{Cause: cause, Since: now, GraceEnd: now.Boot + grace(plan.GraceSeconds)}
}

// currentEnding returns the ending of the pod at a time, or nil.
func (o *Observed) currentEnding(plan *pod.Plan, now Now) *Ending {
	if o.Ending != nil {
		return o.Ending
	}
	if deadline, ok := o.deadline(plan, now); ok && now.Boot >= deadline {
		e := newEnding(plan, EndDeadline, now)
		e.Reason = reasonDeadline
		e.Message = "Pod was active on the node longer than the specified deadline"
		return e
	}
	return nil
}

// deadline returns the CLOCK_BOOTTIME at which activeDeadlineSeconds have passed. Initialization counts.
func (o *Observed) deadline(plan *pod.Plan, now Now) (end time.Duration, ok bool) {
	if plan.ActiveDeadlineSeconds <= 0 {
		return 0, false
	}
	begun := now
	if o.StartTime != nil {
		begun = *o.StartTime
	}
	return begun.Boot + seconds(plan.ActiveDeadlineSeconds), true
}

// endingByContainers returns the ending of a pod whose containers end it, or nil.
func (o *Observed) endingByContainers(plan *pod.Plan, now Now) *Ending {
	for i := range plan.InitContainers {
		c := &plan.InitContainers[i]
		if r := initRole(c); r == roleInit {
			observed := o.container(c.Name)
			if finished(plan, c, r, observed) && !succeeded(r, observed.End) {
				return newEnding(plan, EndInitFailed, now)
			}
		}
	}
	for i := range plan.Containers {
		if !finished(plan, &plan.Containers[i], roleApp, o.container(plan.Containers[i].Name)) {
			return nil
		}
	}
	return newEnding(plan, EndCompleted, now)
}

// beginStop begins the teardown, or shortens the current one: a later request never gives a container
// more time.
func (o *Observed) beginStop(plan *pod.Plan, e Event) {
	requested := plan.GraceSeconds
	if e.GraceSeconds != nil {
		requested = *e.GraceSeconds
	}
	end := e.At.Boot + grace(requested)
	if o.Ending == nil {
		o.Ending = &Ending{Cause: EndRequested, Since: e.At, GraceEnd: end}
		switch e.Reason {
		case pod.ReasonTerminated:
			o.Ending.Cause, o.Ending.Reason = EndShutdown, e.Reason
			o.Ending.Message = "Pod was terminated in response to imminent node shutdown."
		case pod.ReasonEvicted:
			o.Ending.Cause, o.Ending.Reason, o.Ending.Message = EndEvicted, e.Reason, e.Message
		}
	}
	o.Ending.GraceEnd = min(o.Ending.GraceEnd, end)
	if now := e.At.Wall.Add(grace(requested)); o.Deleting && (o.Deletion == nil || now.Before(o.Deletion.At)) {
		o.Deletion = &pod.Deletion{At: now, GraceSeconds: int64(grace(requested) / time.Second)}
	}
	if e.GraceSeconds != nil && requested == 0 {
		o.Ending.AtOnce = true
	}
}

// endingOfLostSandbox returns the ending of a pod whose sandbox could not be made, or died and is not
// replaced. The reason of a failed creation is the same as of the kubelet's event.
func (o *Observed) endingOfLostSandbox(e Event) *Ending {
	end := &Ending{Cause: EndLost, Since: e.At, GraceEnd: e.At.Boot}
	if o.Sandbox == SandboxCreating && e.Kind == SandboxFailed {
		end.Reason, end.Message = "FailedCreatePodSandBox", "Failed to create pod sandbox"
	} else {
		end.Reason, end.Message = "PodSandboxLost", "Pod sandbox is gone"
	}
	if e.Message != "" {
		end.Message += ": " + e.Message
	}
	return end
}

// grace returns the length of a grace period; a negative value counts as 1 s, as in the kubelet and
// the API server.
func grace(s int64) time.Duration {
	if s < 0 {
		s = 1
	}
	return seconds(s)
}

// seconds returns a duration that can be added to any boot-clock time without overflow.
func seconds(s int64) time.Duration {
	return time.Duration(min(s, math.MaxInt32)) * time.Second
}

// startErrorCode is the exit code of a container that never ran, if the event has none: 128, as
// containerd reports it to the kubelet.
const startErrorCode = 128

// failedStart describes a run that never started. Its exit code is not 0: every restart policy
// counts it as a failed run.
func failedStart(e Event) pod.Terminated {
	t := pod.Terminated{ExitCode: e.ExitCode, Reason: e.Reason, Message: e.Message}
	if t.ExitCode == 0 {
		t.ExitCode = startErrorCode
	}
	if t.Reason == "" {
		t.Reason = "StartError"
	}
	return t
}

// exited describes a run that ended, with the reasons of containerd: Completed, Error, OOMKilled.
func exited(e Event) pod.Terminated {
	t := pod.Terminated{ExitCode: e.ExitCode, Signal: e.Signal, Reason: e.Reason, Message: e.Message}
	if t.ExitCode == 0 && t.Signal > 0 {
		t.ExitCode = 128 + t.Signal
	}
	switch {
	case t.Reason != "":
	case e.OOMKilled:
		t.Reason = reasonOOMKilled
	case t.ExitCode == 0:
		t.Reason = "Completed"
	default:
		t.Reason = "Error"
	}
	return t
}

// containerID returns an id as the status prints it, with its runtime.
func containerID(id string) string {
	if id == "" {
		return ""
	}
	return "podrun://" + id
}
