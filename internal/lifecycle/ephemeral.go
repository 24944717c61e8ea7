package lifecycle

import "github.com/podrun/podrun/internal/pod"

// startEphemeral starts ephemeral containers as soon as there is a sandbox, whatever the state of
// the other containers. Each runs once, because its policy is Never (kubelet: computePodActions in
// pkg/kubelet/kuberuntime). Nothing waits for them; they end with the pod.
func (d *decision) startEphemeral() {
	for i := range d.plan.Ephemeral {
		d.start(&d.plan.Ephemeral[i], roleApp)
	}
}

// ephemeralStatuses returns statuses that are never ready: ephemeral containers do not count for
// readiness.
func ephemeralStatuses(plan *pod.Plan, o *Observed, ending *Ending) []pod.ContainerStatus {
	list := containerStatuses(plan, o, ending, plan.Ephemeral, true)
	for i := range list {
		list[i].Ready, list[i].Started = false, false
	}
	return list
}
