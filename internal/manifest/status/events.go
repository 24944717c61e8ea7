package status

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/pod"
)

// EventSource is the component of a pod's events, as the kubelet is on a node.
const EventSource = "podrun"

// Events converts a pod's events to Kubernetes objects. Each keeps its name while it is counted.
func Events(p *corev1.Pod, events []pod.Event) []corev1.Event {
	out := make([]corev1.Event, 0, len(events))
	for _, e := range events {
		out = append(out, corev1.Event{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
			ObjectMeta: metav1.ObjectMeta{Name: eventName(p, e), Namespace: p.Namespace, CreationTimestamp: metav1.NewTime(e.First)},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, FieldPath: fieldPath(p, e.Container),
			},
			Type: string(e.Type), Reason: e.Reason, Message: e.Message, Count: int32(e.Count),
			FirstTimestamp: metav1.NewTime(e.First), LastTimestamp: metav1.NewTime(e.Last),
			Source:              corev1.EventSource{Component: EventSource, Host: p.Spec.NodeName},
			ReportingController: EventSource, ReportingInstance: p.Spec.NodeName,
		})
	}
	return out
}

// eventName returns the pod's name and a number, as in client-go; the number also distinguishes events of
// the same moment.
func eventName(p *corev1.Pod, e pod.Event) string {
	h := fnv.New64a()
	for _, s := range []string{string(p.UID), e.First.UTC().Format(time.RFC3339Nano), string(e.Type), e.Reason, e.Container, e.Message} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return fmt.Sprintf("%s.%016x", p.Name, h.Sum64())
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
