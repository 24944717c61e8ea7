package lifecycle

import "github.com/podrun/podrun/pod"

// phase is the kubelet's getPhase over what is known, and its rule that a pod
// whose containers were all stopped, or that is over, is never left in between.
func phase(plan *pod.Plan, o *Observed, ending *Ending) pod.Phase {
	if ending != nil {
		switch ending.Cause {
		case EndDeadline, EndLost, EndEvicted, EndShutdown:
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
		planned := &plan.InitContainers[i]
		r := initRole(planned)
		switch c := o.container(planned.Name); {
		case r == roleInit && finished(plan, planned, r, c) && !succeeded(r, c.End):
			return pod.Failed
		case r == roleInit && !passed(planned, r, c):
			waiting++
		case r == roleSidecar && !up(planned, c) && c.End == nil:
			waiting++
		case r == roleSidecar && up(planned, c) && !started(planned, c) && !o.initialized():
			waiting++
		}
	}
	stopped, good, restarting := 0, 0, 0
	for i := range plan.Containers {
		planned := &plan.Containers[i]
		switch c := o.container(planned.Name); {
		case up(planned, c):
		case c.End == nil:
			waiting++
		default:
			stopped++
			if succeeded(roleApp, c.End) {
				good++
			}
			if restarts(plan, planned, roleApp, c) {
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
