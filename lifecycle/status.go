package lifecycle

import "github.com/podrun/podrun/pod"

// Status says what has become of the pod, as the kubelet would. Its times are
// those of the events; now stands in only where there was none. BootID and
// Warnings are left to the caller.
func Status(plan *pod.Plan, o *Observed, now Now) pod.Status {
	ending := o.ending(plan, now)
	s := pod.Status{
		Version:        pod.StatusVersion,
		Phase:          phase(plan, o, ending),
		StartTime:      now.Wall,
		Deleting:       o.Deleting,
		Deletion:       o.Deletion,
		Conditions:     o.timed(plan, now),
		InitContainers: containerStatuses(plan, o, ending, plan.InitContainers, false),
		Containers:     containerStatuses(plan, o, ending, plan.Containers, true),
		Ephemeral:      ephemeralStatuses(plan, o, ending),
	}
	if o.Accepted != nil {
		s.StartTime = o.Accepted.Wall
	}
	switch {
	case ending != nil:
		s.Reason, s.Message = ending.Reason, ending.Message
	case o.Pause.paused():
		s.Reason, s.Message = pod.ReasonPaused, "podrun unpause "+plan.Name+" lets it go on"
	}
	return s
}
