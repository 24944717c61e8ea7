package status

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/pod"
)

// EventSource is the component of a pod's events, as the kubelet is on a node.
const EventSource = "podrun"

// Events converts a pod's events to Kubernetes objects. Each keeps its name while it is counted.
func Events(p *corev1.Pod, events []pod.Event) []corev1.Event {
	out := make([]corev1.Event, 0, len(events))
	for _, e := range events {
		about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, FieldPath: fieldPath(p, e.Container)}
		out = append(out, event(about, p.Spec.NodeName, e))
	}
	return out
}

// WorkloadEvents converts the events of a workload, without its pods' events.
func WorkloadEvents(o *pod.Object, events []pod.Event) []corev1.Event {
	out := make([]corev1.Event, 0, len(events))
	for _, e := range events {
		out = append(out, event(corev1.ObjectReference{Kind: string(o.Kind), Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}, "", e))
	}
	return out
}

func event(about corev1.ObjectReference, host string, e pod.Event) corev1.Event {
	return corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: eventName(about, e), Namespace: about.Namespace, CreationTimestamp: metav1.NewTime(e.First)},
		InvolvedObject: about,
		Type:           string(e.Type), Reason: e.Reason, Message: e.Message, Count: int32(e.Count),
		FirstTimestamp: metav1.NewTime(e.First), LastTimestamp: metav1.NewTime(e.Last),
		Source:              corev1.EventSource{Component: EventSource, Host: host},
		ReportingController: EventSource, ReportingInstance: host,
	}
}

// eventName returns the object's name and a number, as in client-go; the number also distinguishes events of
// the same moment.
func eventName(about corev1.ObjectReference, e pod.Event) string {
	h := fnv.New64a()
	for _, s := range []string{string(about.UID), e.First.UTC().Format(time.RFC3339Nano), string(e.Type), e.Reason, e.Container, e.Message} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return fmt.Sprintf("%s.%016x", about.Name, h.Sum64())
}

// fieldPath returns the path of a container as in the kubelet (kubecontainer.GenerateContainerRef).
func fieldPath(p *corev1.Pod, container string) string {
	if container == "" {
		return ""
	}
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == container {
			return "spec.initContainers{" + container + "}"
		}
	}
	return "spec.containers{" + container + "}"
}
