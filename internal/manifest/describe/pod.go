package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// Pod returns the page of a pod with its status (manifest.Render). machine has the fields that only this
// machine has.
func Pod(pod *corev1.Pod, events []corev1.Event, machine []Field, now time.Time) string {
	p := newPage(now)
	p.pod(pod, machine)
	p.events(events)
	return p.String()
}

// PodWithoutEvents is Pod without the section of events.
func PodWithoutEvents(pod *corev1.Pod, machine []Field, now time.Time) string {
	p := newPage(now)
	p.pod(pod, machine)
	return p.String()
}

func (p *page) pod(pod *corev1.Pod, machine []Field) {
	p.head(pod)
	if pod.Spec.Resources != nil {
		p.row(0, "Resources:")
		p.resources(1, pod.Spec.Resources)
	}
	if len(pod.Spec.InitContainers) > 0 {
		p.containers(pod, "Init Containers:", pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	p.containers(pod, "Containers:", pod.Spec.Containers, pod.Status.ContainerStatuses)
	if len(pod.Spec.EphemeralContainers) > 0 {
		p.containers(pod, "Ephemeral Containers:", podutil.EphemeralContainers(pod), pod.Status.EphemeralContainerStatuses)
	}
	p.conditions(pod)
	p.volumes(pod.Spec.Volumes)
	p.row(0, "QoS Class:", string(pod.Status.QOSClass))
	p.list("Node-Selectors:", labels(pod.Spec.NodeSelector))
	p.list("Tolerations:", tolerations(pod.Spec.Tolerations))
	for _, line := range machine {
		p.row(0, line.Name+":", line.Value)
	}
}

func (p *page) head(pod *corev1.Pod) {
	p.nameAndNamespace(pod)
	rowIfSet(p, 0, "Priority:", pod.Spec.Priority, "%d")
	p.maybe("Priority Class Name:", pod.Spec.PriorityClassName)
	p.maybe("Runtime Class Name:", ptr.Deref(pod.Spec.RuntimeClassName, ""))
	p.maybe("Service Account:", pod.Spec.ServiceAccountName)
	node := none
	if pod.Spec.NodeName != "" {
		node = pod.Spec.NodeName + "/" + pod.Status.HostIP
	}
	p.row(0, "Node:", node)
	if pod.Status.StartTime != nil {
		p.row(0, "Start Time:", stamp(*pod.Status.StartTime))
	}
	p.labelsAndAnnotations(pod)
	p.status(pod)
	p.row(0, "IP:", pod.Status.PodIP)
	if len(pod.Status.PodIPs) == 0 {
		p.row(0, "IPs:", none)
	} else {
		p.row(0, "IPs:")
	}
	for _, ip := range pod.Status.PodIPs {
		p.row(1, "IP:", ip.IP)
	}
	p.controlledBy(pod)
}

func (p *page) status(pod *corev1.Pod) {
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if pod.DeletionTimestamp != nil && !over {
		how := "lasts " + p.ago(pod.DeletionTimestamp.Time)
		if left := pod.DeletionTimestamp.Sub(p.clock); left > 0 { // kubectl prints <invalid> for these
			how = "ends within " + duration.HumanDuration(left)
		}
		p.row(0, "Status:", "Terminating ("+how+")")
		p.row(0, "Termination Grace Period:", fmt.Sprintf("%ds", *pod.DeletionGracePeriodSeconds))
	} else {
		p.row(0, "Status:", string(pod.Status.Phase))
	}
	p.maybe("Reason:", pod.Status.Reason)
	p.maybe("Message:", pod.Status.Message)
	if pod.Spec.SecurityContext != nil {
		p.seccomp(0, 0, pod.Spec.SecurityContext.SeccompProfile)
	}
}

// maybe writes a value unless it is empty.
func (p *page) maybe(title, value string) {
	if value != "" {
		p.row(0, title, value)
	}
}

func (p *page) seccomp(level, sub int, profile *corev1.SeccompProfile) {
	if profile == nil {
		return
	}
	p.row(level, "SeccompProfile:", string(profile.Type))
	rowIfSet(p, sub, "LocalhostProfile:", profile.LocalhostProfile, "%s")
}

// conditions writes the conditions, the readiness gates' first.
func (p *page) conditions(pod *corev1.Pod) {
	if len(pod.Spec.ReadinessGates) > 0 {
		p.row(0, "Readiness Gates:")
		p.row(1, "Type", "Status")
	}
	for _, gate := range pod.Spec.ReadinessGates {
		status := none
		for _, c := range pod.Status.Conditions {
			if c.Type == gate.ConditionType {
				status = string(c.Status)
			}
		}
		p.row(1, string(gate.ConditionType)+" ", status+" ")
	}
	if len(pod.Status.Conditions) > 0 {
		p.row(0, "Conditions:")
		p.row(1, "Type", "Status")
	}
	for _, c := range pod.Status.Conditions {
		p.row(1, string(c.Type)+" ", string(c.Status)+" ")
	}
}

func tolerations(list []corev1.Toleration) (out []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b corev1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	for _, t := range list {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + string(t.Effect)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value == "" {
			if text != "" {
				text += " "
			}
			text += "op=Exists"
		}
		if t.TolerationSeconds != nil {
			text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		out = append(out, text)
	}
	return out
}

func stamp(t metav1.Time) string { return t.Format(time.RFC1123Z) }
