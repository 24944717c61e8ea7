package lifecycle

import (
	"cmp"

	"github.com/podrun/podrun/internal/pod"
)

// Status returns the pod's status as the kubelet would compute it. Its times are the times of the
// events, or now if there was none. The caller adds BootID and Warnings.
func Status(plan *pod.Plan, o *Observed, now Now) pod.Status {
	ending := o.currentEnding(plan, now)
	s := pod.Status{
		Version:        pod.StatusVersion,
		Phase:          phase(plan, o, ending),
		StartTime:      now.Wall,
		Deleting:       o.Deleting,
		Deletion:       o.Deletion,
		Conditions:     o.conditionsWithTimes(plan, now),
		InitContainers: containerStatuses(plan, o, ending, plan.InitContainers, false),
		Containers:     containerStatuses(plan, o, ending, plan.Containers, true),
		Ephemeral:      ephemeralStatuses(plan, o, ending),
	}
	if o.StartTime != nil {
		s.StartTime = o.StartTime.Wall
	}
	switch {
	case ending != nil:
		s.Reason, s.Message = ending.Reason, ending.Message
	case o.Pause.paused():
		s.Reason, s.Message = pod.ReasonPaused, "podrun unpause "+plan.Name+" resumes it"
	}
	return s
}

// containerStatuses returns the statuses of one list of the plan, in its order.
func containerStatuses(plan *pod.Plan, o *Observed, ending *Ending, list []pod.Container, app bool) []pod.ContainerStatus {
	if len(list) == 0 {
		return nil
	}
	out := make([]pod.ContainerStatus, len(list))
	for i := range list {
		r := roleApp
		if !app {
			r = initRole(&list[i])
		}
		out[i] = containerStatus(plan, o, ending, &list[i], r, o.container(list[i].Name))
	}
	return out
}

func containerStatus(plan *pod.Plan, o *Observed, ending *Ending, c *pod.Container, r role, observed *Container) pod.ContainerStatus {
	s := pod.ContainerStatus{
		Name: c.Name, Image: cmp.Or(observed.Image, c.Image), ImageID: cmp.Or(observed.ImageID, c.ImageID), User: observed.User,
		RestartCount: observed.shownAttempt(), ContainerID: containerID(observed.ID),
		Started: started(c, observed), Ready: ready(c, r, observed),
	}
	switch {
	case isRunning(c, observed):
		s.State.Running = &pod.RunningAt{StartedAt: observed.Started}
		s.Unhealthy = c.Readiness != nil && observed.Readiness.Result == Failure
		s.LastState = terminated(observed.End)
	case o.Restarting && observed.State == RunEnded:
		s.State.Waiting = &pod.Waiting{Reason: reasonRestartingAll, Message: messageRestartingAll}
		s.LastState = terminated(observed.End)
	case observed.State == RunEnded && !observed.willRunAgain(ending) && !crashLooping(plan, c, ending, r, observed):
		s.State = terminated(observed.End)
		s.LastState = terminated(observed.PrevEnd)
	default:
		s.State.Waiting = waiting(plan, r, c.Name, observed)
		s.LastState = terminated(observed.End)
	}
	return s
}

// shownAttempt returns the attempt of the run that the status shows: while the next run is not running, the one
// before. Until the next container exists, the kubelet reports the earlier one.
func (c *Container) shownAttempt() int {
	if (c.State == RunStarting || c.State == RunNotCreated) && c.End != nil {
		return c.Attempt - 1
	}
	return c.Attempt
}

// willRunAgain reports whether a container that ended runs again as if for the first time.
func (c *Container) willRunAgain(ending *Ending) bool {
	return ending == nil && c.FreshStart == FreshFromScratch
}

// crashLooping reports whether a container that ended waits for its back-off.
func crashLooping(plan *pod.Plan, planned *pod.Container, ending *Ending, r role, c *Container) bool {
	return ending == nil && c.State == RunEnded && restarts(plan, planned, r, c) && c.delay() > 0
}

// waiting returns the kubelet's reason. In a pod with init containers, all containers wait with
// PodInitializing before their first run. On a restart only plain init containers do.
func waiting(plan *pod.Plan, r role, name string, c *Container) *pod.Waiting {
	switch {
	case c.State == RunNotCreated:
		reason := *c.NotCreated
		return &reason
	case c.State == RunEnded && c.delay() > 0:
		return &pod.Waiting{Reason: "CrashLoopBackOff", Message: backoffMessage(plan, name, c.delay())}
	case len(plan.InitContainers) > 0 && (c.End == nil || r == roleInit || c.FreshStart != FreshNone):
		return &pod.Waiting{Reason: "PodInitializing"}
	default:
		return &pod.Waiting{Reason: "ContainerCreating"}
	}
}

// terminated returns a copy as a State, so that no caller can write to Observed.
func terminated(t *pod.Terminated) pod.State {
	if t == nil {
		return pod.State{}
	}
	copied := *t
	return pod.State{Terminated: &copied}
}

// phase follows the kubelet's getPhase, and its rule that a pod that is over, or whose containers
// were all stopped, is Succeeded or Failed.
func phase(plan *pod.Plan, o *Observed, ending *Ending) pod.Phase {
	if ending != nil {
		switch ending.Cause {
		case EndDeadline, EndLost, EndEvicted, EndShutdown:
			return pod.Failed
		}
	}
	p := phaseOfContainers(plan, o, ending)
	if o.podEnded(plan, ending) && !p.Terminal() {
		return pod.Failed // a required container never ran
	}
	return p
}

// phaseOfContainers computes the phase from the containers alone. A run that ended counts until the
// next one runs.
func phaseOfContainers(plan *pod.Plan, o *Observed, ending *Ending) pod.Phase {
	waiting := false
	for i := range plan.InitContainers {
		planned := &plan.InitContainers[i]
		r, c := initRole(planned), o.container(planned.Name)
		if r == roleInit && finished(plan, planned, r, c) && !succeeded(r, c.End) {
			return pod.Failed
		}
		waiting = waiting || o.initWaits(planned, r, c)
	}
	good, restarting := true, false // of those that have stopped
	for i := range plan.Containers {
		planned := &plan.Containers[i]
		switch c := o.container(planned.Name); {
		case isRunning(planned, c):
		case c.End == nil:
			waiting = true
		default:
			good = good && succeeded(roleApp, c.End)
			restarting = restarting || restarts(plan, planned, roleApp, c)
		}
	}
	switch {
	case waiting:
		return pod.Pending
	case !o.idle(plan), ending == nil && restarting:
		return pod.Running
	case good:
		return pod.Succeeded
	default:
		return pod.Failed
	}
}

// initWaits reports whether an init container or a sidecar keeps the pod Pending.
func (o *Observed) initWaits(planned *pod.Container, r role, c *Container) bool {
	switch {
	case r == roleInit:
		return !letsNextStart(planned, r, c)
	case !isRunning(planned, c):
		return c.End == nil
	default:
		return !started(planned, c) && !o.initialized()
	}
}
