package lifecycle

import (
	"math"
	"time"

	"github.com/podrun/podrun/pod"
)

// Cause says why a pod is brought to its end. The first cause stays: what
// happens to the pod afterwards is the end, not its reason.
type Cause string

const (
	EndAsked      Cause = "asked"      // by the user
	EndDeadline   Cause = "deadline"   // activeDeadlineSeconds are over
	EndInitFailed Cause = "initFailed" // an init container failed under policy Never
	EndCompleted  Cause = "completed"  // no app container runs or will run again
	EndLost       Cause = "lost"       // the sandbox could not be made, or died and there is to be no other
	EndShutdown   Cause = "shutdown"   // with the machine; the pod goes on when that is started again
	EndEvicted    Cause = "evicted"    // it has more on disk than it may
)

// minimumGrace is the time every container has between its stop signal and
// KILL, however little is left of the pod's grace (the kubelet's
// minimumGracePeriodInSeconds).
const minimumGrace = 2 * time.Second

// Ending is the one teardown of a pod. From it on nothing is started.
type Ending struct {
	Cause    Cause         `json:"cause"`
	Since    Now           `json:"since"`
	GraceEnd time.Duration `json:"graceEnd"`          // Boot time at which the grace is used up
	AtOnce   bool          `json:"atOnce,omitempty"`  // a grace of 0 was asked for: KILL, no stop signal
	Reason   string        `json:"reason,omitempty"`  // of the pod, if the cause gives one
	Message  string        `json:"message,omitempty"` // likewise
}

// begin is a teardown with the plan's own grace.
func begin(plan *pod.Plan, cause Cause, at Now) *Ending {
	return &Ending{Cause: cause, Since: at, GraceEnd: at.Boot + grace(plan.GraceSeconds)}
}

// ending gives the teardown the pod is in at a time, or nil.
func (o *Observed) ending(plan *pod.Plan, now Now) *Ending {
	if o.Ending != nil {
		return o.Ending
	}
	if at, ok := o.deadline(plan, now); ok && now.Boot >= at {
		e := begin(plan, EndDeadline, now)
		e.Reason = reasonDeadline
		e.Message = "Pod was active on the node longer than the specified deadline"
		return e
	}
	return nil
}

// deadline is the Boot time at which the pod has been active for too long.
// Initialisation counts.
func (o *Observed) deadline(plan *pod.Plan, now Now) (at time.Duration, ok bool) {
	if plan.ActiveDeadlineSeconds <= 0 {
		return 0, false
	}
	begun := now
	if o.Accepted != nil {
		begun = *o.Accepted
	}
	return begun.Boot + seconds(plan.ActiveDeadlineSeconds), true
}

// ended sees a pod come to its end by itself.
func (o *Observed) ended(plan *pod.Plan, at Now) *Ending {
	for i := range plan.InitContainers {
		c := &plan.InitContainers[i]
		if r := initRole(c); r == roleInit {
			seen := o.container(c.Name)
			if finished(plan, c, r, seen) && !succeeded(r, seen.End) {
				return begin(plan, EndInitFailed, at)
			}
		}
	}
	for i := range plan.Containers {
		if !finished(plan, &plan.Containers[i], roleApp, o.container(plan.Containers[i].Name)) {
			return nil
		}
	}
	return begin(plan, EndCompleted, at)
}

// askStop begins the teardown, or shortens the one that is under way: a later
// request never gives a container more time.
func (o *Observed) askStop(plan *pod.Plan, e Event) {
	asked := plan.GraceSeconds
	if e.GraceSeconds != nil {
		asked = *e.GraceSeconds
	}
	end := e.At.Boot + grace(asked)
	if o.Ending == nil {
		o.Ending = &Ending{Cause: EndAsked, Since: e.At, GraceEnd: end}
		if e.Reason == pod.ReasonTerminated {
			o.Ending.Cause, o.Ending.Reason = EndShutdown, e.Reason
			o.Ending.Message = "Pod was terminated in response to imminent node shutdown."
		}
	}
	o.Ending.GraceEnd = min(o.Ending.GraceEnd, end)
	if at := e.At.Wall.Add(grace(asked)); o.Deleting && (o.Deletion == nil || at.Before(o.Deletion.At)) {
		o.Deletion = &pod.Deletion{At: at, GraceSeconds: int64(grace(asked) / time.Second)}
	}
	if e.GraceSeconds != nil && asked == 0 {
		o.Ending.AtOnce = true
	}
}

// lost is the end of a pod whose sandbox could not be made, or is gone against our will
// and not to be made anew. The reason of a failed creation is the one of the kubelet's
// event.
func (o *Observed) lost(e Event) *Ending {
	end := &Ending{Cause: EndLost, Since: e.At, GraceEnd: e.At.Boot}
	if o.Sandbox == SandboxCreating && e.Kind == SandboxLost {
		end.Reason, end.Message = "FailedCreatePodSandBox", "Failed to create pod sandbox"
	} else {
		end.Reason, end.Message = "PodSandboxLost", "Pod sandbox is gone"
	}
	if e.Message != "" {
		end.Message += ": " + e.Message
	}
	return end
}

// grace is the length of a grace period; a negative one is 1 s, as in the
// kubelet and the API server.
func grace(s int64) time.Duration {
	if s < 0 {
		s = 1
	}
	return seconds(s)
}

// seconds is a duration that can be added to any Boot time without overflow.
func seconds(s int64) time.Duration {
	return time.Duration(min(s, math.MaxInt32)) * time.Second
}

// startErrorCode is the exit code of a container that never ran, where the
// event has none: 128, as containerd reports it to the kubelet.
const startErrorCode = 128

// failedStart describes a run that never came to be. Its code is not 0: it
// counts as a failed run for every restart policy.
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

// exited describes a run that ended, with the reasons that the kubelet's users
// know from containerd: Completed, Error, OOMKilled.
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

// containerID is an id as the status shows it, with its runtime.
func containerID(id string) string {
	if id == "" {
		return ""
	}
	return "podrun://" + id
}
