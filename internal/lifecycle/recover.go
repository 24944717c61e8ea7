package lifecycle

import "github.com/podrun/podrun/internal/pod"

// restoreRun applies the latest run of a container that the disk records from before a reboot: the run has
// ended, and there was a sandbox.
func (o *Observed) restoreRun(plan *pod.Plan, e Event) {
	if _, ok := plan.Container(e.Container); !ok || o.Containers[e.Container] != nil || o.Ending != nil {
		return
	}
	if o.Sandbox == SandboxNone {
		o.Sandbox = SandboxUp
	}
	if o.Containers == nil {
		o.Containers = map[string]*Container{}
	}
	end := exited(e)
	end.FinishedAt = e.At.Wall
	o.Containers[e.Container] = &Container{State: RunEnded, Attempt: max(e.Attempt, 0), Issued: e.At, Ended: e.At.Boot, End: &end, FreshStart: FreshAfterLoss}
}

// CompletedContainers returns the containers of a continuing pod that have run and do not run again.
func CompletedContainers(plan *pod.Plan, o *Observed) (names []string) {
	if o.Ending != nil {
		return nil
	}
	for i := range plan.Containers {
		c := &plan.Containers[i]
		if finished(plan, c, roleApp, o.container(c.Name)) {
			names = append(names, c.Name)
		}
	}
	return names
}
