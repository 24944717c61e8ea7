package manifest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/pod/glance"
)

// eventSource is who tells of a pod, as the kubelet does on a node.
const eventSource = "podrun"

// Events gives a pod's events as Kubernetes objects. Each keeps its name for as
// long as it is counted.
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
			Source:              corev1.EventSource{Component: eventSource, Host: p.Spec.NodeName},
			ReportingController: eventSource, ReportingInstance: p.Spec.NodeName,
		})
	}
	return out
}

// eventName is the pod's name and a number, as client-go makes it; it also tells
// events of the same moment from each other.
func eventName(p *corev1.Pod, e pod.Event) string {
	h := fnv.New64a()
	for _, s := range []string{string(p.UID), e.First.UTC().Format(time.RFC3339Nano), string(e.Type), e.Reason, e.Container, e.Message} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return fmt.Sprintf("%s.%016x", p.Name, h.Sum64())
}

// fieldPath names a container as the kubelet does (kubecontainer.GenerateContainerRef).
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

// EventColumns is one line of `podrun events`, with the columns of kubectl.
type EventColumns struct {
	LastSeen, Type, Reason string
	Object                 string // Pod/web, or Pod/web{app} when it is about a container
	Message                string

	Subobject, Source, FirstSeen, Count, Name string // wide
}

// EventRow is an event in one line (EventPrinter in k8s.io/kubectl/pkg/cmd/events).
func EventRow(e *corev1.Event, now time.Time) EventColumns {
	seen := glance.Age(e.FirstTimestamp.Time, now)
	if e.Count > 1 {
		seen = fmt.Sprintf("%s (x%d over %s)", glance.Age(e.LastTimestamp.Time, now), e.Count, seen)
	}
	object := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
	if i := strings.IndexByte(e.InvolvedObject.FieldPath, '{'); i >= 0 {
		object += e.InvolvedObject.FieldPath[i:]
	}
	return EventColumns{
		LastSeen: seen, Type: e.Type, Reason: e.Reason, Object: object, Message: strings.TrimSpace(e.Message),
		Subobject: e.InvolvedObject.FieldPath, Source: cmp.Or(e.Source.Component, eventSource),
		FirstSeen: glance.Age(e.FirstTimestamp.Time, now), Count: strconv.Itoa(int(e.Count)), Name: e.Name,
	}
}

// PrintEvents writes events as an EventList.
func PrintEvents(events []corev1.Event, f Format) ([]byte, error) {
	if events == nil {
		events = []corev1.Event{}
	}
	return printObject(corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: events}, f)
}

// PrintEvent writes one event.
func PrintEvent(e *corev1.Event, f Format) ([]byte, error) { return printObject(e, f) }
