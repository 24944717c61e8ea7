package lifecycle

import (
	"fmt"

	"github.com/podrun/podrun/internal/pod"
)

// endOutdatedRuns ends the runs of app containers and sidecars that have another revision in the changed
// plan. A plain init container uses the new revision in its next run, if there is one (kubelet:
// computePodActions). A new definition starts without a back-off.
func (o *Observed) endOutdatedRuns(plan *pod.Plan, now Now) {
	if o.Ending != nil {
		return
	}
	for n, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			planned := &list[i]
			c, ok := o.Containers[planned.Name]
			if !ok || !c.outdated(planned) || n == 0 && !planned.Sidecar {
				continue
			}
			c.Backoff = 0
			if !c.live() || c.Kill != nil {
				continue
			}
			length, reason := plan.GraceSeconds, "definition changed" // the kubelet's message
			if planned.RestartRequested {
				reason = "restart requested"
			}
			if planned.RestartGraceSeconds != nil {
				length = *planned.RestartGraceSeconds
			}
			c.Kill = &Kill{Why: KillReplaced, Since: now, GraceEnd: now.Boot + grace(length)}
			o.note(now, pod.Normal, eventKilling, planned.Name, fmt.Sprintf("Container %s %s, will be restarted", planned.Name, reason))
		}
	}
}

// outdated reports whether the latest run has another revision than the plan.
func (c *Container) outdated(planned *pod.Container) bool { return c.Revision != planned.Revision }
