package resources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// pids adds the limits of processes. A container without one shares the pod's: its own, or at least the sum of
// its containers'.
func (e *Effective) pids(p *corev1.Pod) {
	s := declaredAmounts(p, podutil.ResourcePids)
	sum := combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit })
	e.Pod.Pids, e.Pod.PodPids = s.pod.limit.or(sum).value, s.pod.limit.set
	for i, c := range s.inits {
		e.InitContainers[i].Pids = c.limit.value
	}
	for i, c := range s.apps {
		e.Containers[i].Pids = c.limit.value
	}
}
