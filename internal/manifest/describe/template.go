package describe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Template returns the template of a workload's pods, as it is in the workload's page.
func Template(t *corev1.PodTemplateSpec) string {
	p := newPage(time.Time{})
	p.template(t)
	return p.String()
}

// template writes the template of the pods that are made (DescribePodTemplate).
func (p *page) template(t *corev1.PodTemplateSpec) {
	p.row(0, "Pod Template:")
	p.list("  Labels:", labels(t.Labels))
	p.inner = true
	if len(t.Annotations) > 0 {
		p.annotations(t.Annotations)
	}
	p.maybe("Service Account:", t.Spec.ServiceAccountName)
	if len(t.Spec.InitContainers) > 0 {
		p.containers(&corev1.Pod{}, "Init Containers:", t.Spec.InitContainers, nil)
	}
	p.containers(&corev1.Pod{}, "Containers:", t.Spec.Containers, nil)
	p.volumes(t.Spec.Volumes)
	p.topologySpread(t.Spec.TopologySpreadConstraints)
	p.maybe("Priority Class Name:", t.Spec.PriorityClassName)
	p.list("Node-Selectors:", labels(t.Spec.NodeSelector))
	p.list("Tolerations:", tolerations(t.Spec.Tolerations))
	p.inner = false
}

func (p *page) topologySpread(list []corev1.TopologySpreadConstraint) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b corev1.TopologySpreadConstraint) int { return cmp.Compare(a.TopologyKey, b.TopologyKey) })
	title := "Topology Spread Constraints:"
	for _, c := range list {
		text := fmt.Sprintf("%s:%s when max skew %d is exceeded", c.TopologyKey, c.WhenUnsatisfiable, c.MaxSkew)
		if c.LabelSelector != nil {
			text += " for selector " + metav1.FormatLabelSelector(c.LabelSelector)
		}
		p.row(0, title, text)
		title = ""
	}
}

// selector returns a label selector in one line.
func selector(s *metav1.LabelSelector) string {
	found, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "Failed to get selector: " + err.Error()
	}
	return found.String()
}

// orUnset returns a value as text, or the text for an unset one.
func orUnset[T any](v *T, format string) string {
	if v == nil {
		return "<unset>"
	}
	return fmt.Sprintf(format, *v)
}

// phases returns the number of pods in each phase.
func phases(pods []corev1.Pod) string {
	n := map[corev1.PodPhase]int{}
	for i := range pods {
		n[pods[i].Status.Phase]++
	}
	return fmt.Sprintf("%d Running / %d Waiting / %d Succeeded / %d Failed", n[corev1.PodRunning], n[corev1.PodPending], n[corev1.PodSucceeded], n[corev1.PodFailed])
}
