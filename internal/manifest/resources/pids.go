package resources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// pids adds the limits of processes. A container without one shares the pod's, which is at least their sum.
func (e *Effective) pids(p *corev1.Pod) {
	s := declaredAmounts(p, podutil.ResourcePids)
	e.Pod.Pids = combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit }).value
	for i, c := range s.inits {
		e.InitContainers[i].Pids = c.limit.value
	}
	for i, c := range s.apps {
		e.Containers[i].Pids = c.limit.value
	}
}
