package printers

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
)

// PodColumns is one line of `podrun ps -o wide`, with kubectl's columns and strings.
type PodColumns struct {
	podrow.Row
	IP, Node string // <none> if there is none
}

// PodRow returns a pod as one line, as kubectl get prints it. A nil status is as for Render.
func PodRow(p *corev1.Pod, st *pod.Status, now time.Time) PodColumns {
	if st == nil {
		st = &pod.Status{Phase: pod.Pending}
	}
	row := PodColumns{Row: podrow.New(p.Name, p.CreationTimestamp.Time, rowPlan(p), st, now), Node: cmp.Or(p.Spec.NodeName, "<none>"), IP: "<none>"}
	if len(st.PodIPs) > 0 {
		row.IP = cmp.Or(st.PodIPs[0], row.IP)
	}
	return row
}

// rowPlan returns the part of a pod's Plan that its line needs.
func rowPlan(p *corev1.Pod) *pod.Plan {
	var plan pod.Plan
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		plan.InitContainers = append(plan.InitContainers, pod.Container{Name: c.Name, Sidecar: podutil.IsSidecar(c)})
	}
	for i := range p.Spec.Containers {
		plan.Containers = append(plan.Containers, pod.Container{Name: p.Spec.Containers[i].Name})
	}
	return &plan
}
