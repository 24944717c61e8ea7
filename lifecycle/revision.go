package lifecycle

import (
	"fmt"

	"github.com/podrun/podrun/pod"
)

// replace ends the runs of app containers and sidecars of which the plan, since it was
// changed, has another revision. Of a plain init container the next run is the new
// one, if there is to be a next (kubelet: computePodActions). A new definition has no
// back-off yet.
func (o *Observed) replace(plan *pod.Plan, at Now) {
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
			c.Kill = &Kill{Why: KillReplaced, Since: at, GraceEnd: at.Boot + grace(plan.GraceSeconds)}
			why := "definition changed" // the kubelet's words
			if planned.Asked {
				why = "restart requested"
			}
			o.note(at, pod.Normal, eventKilling, planned.Name, fmt.Sprintf("Container %s %s, will be restarted", planned.Name, why))
		}
	}
}

// outdated says whether the latest run was of another revision than the plan has now.
func (c *Container) outdated(planned *pod.Container) bool { return c.Revision != planned.Revision }
