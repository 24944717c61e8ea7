package lifecycle

import (
	"cmp"

	"github.com/podrun/podrun/pod"
)

// containerStatuses are the statuses of one list of the plan, in its order.
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

func containerStatus(plan *pod.Plan, o *Observed, ending *Ending, c *pod.Container, r role, seen *Container) pod.ContainerStatus {
	s := pod.ContainerStatus{
		Name: c.Name, Image: cmp.Or(seen.Image, c.Image), ImageID: cmp.Or(seen.ImageID, c.ImageID), User: seen.User,
		RestartCount: seen.Attempt, ContainerID: containerID(seen.ID),
		Started: started(c, seen), Ready: ready(c, r, seen),
	}
	switch {
	case up(c, seen):
		s.State.Running = &pod.RunningAt{StartedAt: seen.Started}
		s.LastState = terminated(seen.End)
	case o.Restarting && seen.State == RunEnded:
		s.State.Waiting = &pod.Waiting{Reason: reasonRestartingAll, Message: messageRestartingAll}
		s.LastState = terminated(seen.End)
	case seen.State == RunEnded && !seen.purged(ending) && !crashLooping(plan, c, ending, r, seen):
		s.State = terminated(seen.End)
		s.LastState = terminated(seen.PrevEnd)
	default:
		s.State.Waiting = waiting(plan, r, c.Name, seen)
		s.LastState = terminated(seen.End)
	}
	return s
}

// purged says whether a container that ended is to be run as if it never had been.
func (c *Container) purged(ending *Ending) bool { return ending == nil && c.Renew == RenewAnew }

// crashLooping says whether a container that ended waits for its back-off.
func crashLooping(plan *pod.Plan, planned *pod.Container, ending *Ending, r role, c *Container) bool {
	return ending == nil && c.State == RunEnded && restarts(plan, planned, r, c) && c.delay() > 0
}

// waiting gives the kubelet's reason. Before their first run all containers of
// a pod with init containers wait with PodInitializing; of those that are being
// started again, only the plain init containers do.
func waiting(plan *pod.Plan, r role, name string, c *Container) *pod.Waiting {
	switch {
	case c.State == RunUnmade:
		why := *c.Unmade
		return &why
	case c.State == RunEnded && c.delay() > 0:
		return &pod.Waiting{Reason: "CrashLoopBackOff", Message: backoffMessage(plan, name, c.delay())}
	case len(plan.InitContainers) > 0 && (c.End == nil || r == roleInit || c.Renew != RenewNone):
		return &pod.Waiting{Reason: "PodInitializing"}
	default:
		return &pod.Waiting{Reason: "ContainerCreating"}
	}
}

// terminated is a state of its own, so that no caller can write to Observed.
func terminated(t *pod.Terminated) pod.State {
	if t == nil {
		return pod.State{}
	}
	own := *t
	return pod.State{Terminated: &own}
}
