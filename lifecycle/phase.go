package lifecycle

import "github.com/podrun/podrun/pod"

// phase is the kubelet's getPhase over what is known, and its rule that a pod
// whose containers were all stopped, or that is over, is never left in between.
func phase(plan *pod.Plan, o *Observed, ending *Ending) pod.Phase {
	if ending != nil {
		switch ending.Cause {
		case EndDeadline, EndLost, EndEvicted:
			return pod.Failed
		}
	}
	p := phaseOfContainers(plan, o, ending)
	if o.over(plan, ending) && !p.Terminal() {
		return pod.Failed // something never ran that should have
	}
	return p
}

// phaseOfContainers judges by the containers alone. A run that ended counts
// until the next one is running.
func phaseOfContainers(plan *pod.Plan, o *Observed, ending *Ending) pod.Phase {
	waiting := 0
	for i := range plan.InitContainers {
		r := initRole(&plan.InitContainers[i])
		switch c := o.container(plan.InitContainers[i].Name); {
		case r == roleInit && finished(plan, r, c) && !succeeded(r, c.End):
			return pod.Failed
		case r == roleInit && !passed(r, c):
			waiting++
		case r == roleSidecar && c.State != RunRunning && c.End == nil:
			waiting++
		}
	}
	stopped, good, restarting := 0, 0, 0
	for i := range plan.Containers {
		switch c := o.container(plan.Containers[i].Name); {
		case c.State == RunRunning:
		case c.End == nil:
			waiting++
		default:
			stopped++
			if succeeded(roleApp, c.End) {
				good++
			}
			if restarts(plan, roleApp, c.End) {
				restarting++
			}
		}
	}
	switch {
	case waiting > 0:
		return pod.Pending
	case !o.idle(plan), ending == nil && restarting > 0:
		return pod.Running
	case stopped == good:
		return pod.Succeeded
	default:
		return pod.Failed
	}
}
