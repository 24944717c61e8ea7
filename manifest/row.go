package manifest

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/pod/glance"
)

// Columns is one line of `podrun ps -o wide`, with kubectl's columns and strings.
type Columns struct {
	glance.Line
	IP, Node string // <none> where there is none
}

// Row sums a pod up in one line, as kubectl get does. A nil status is as for Render.
func Row(p *corev1.Pod, st *pod.Status, now time.Time) Columns {
	if st == nil {
		st = &pod.Status{Phase: pod.Pending}
	}
	row := Columns{Line: glance.Of(p.Name, p.CreationTimestamp.Time, outline(p), st, now), Node: cmp.Or(p.Spec.NodeName, "<none>"), IP: "<none>"}
	if len(st.PodIPs) > 0 {
		row.IP = cmp.Or(st.PodIPs[0], row.IP)
	}
	return row
}

// outline is of a pod's Plan what its line is made of.
func outline(p *corev1.Pod) *pod.Plan {
	var plan pod.Plan
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		plan.InitContainers = append(plan.InitContainers, pod.Container{Name: c.Name, Sidecar: sidecar(c)})
	}
	for i := range p.Spec.Containers {
		plan.Containers = append(plan.Containers, pod.Container{Name: p.Spec.Containers[i].Name})
	}
	return &plan
}
