package printers

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod/podrow"
)

// EventColumns is one line of `podrun events`, with the columns of kubectl.
type EventColumns struct {
	LastSeen, Type, Reason string
	Object                 string // Pod/web, or Pod/web{app} when it is about a container
	Message                string

	Subobject, Source, FirstSeen, Count, Name string // wide
}

// EventRow returns an event as one line (EventPrinter in k8s.io/kubectl/pkg/cmd/events).
func EventRow(e *corev1.Event, now time.Time) EventColumns {
	lastSeen := podrow.Age(e.FirstTimestamp.Time, now)
	if e.Count > 1 {
		lastSeen = fmt.Sprintf("%s (x%d over %s)", podrow.Age(e.LastTimestamp.Time, now), e.Count, lastSeen)
	}
	object := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
	if i := strings.IndexByte(e.InvolvedObject.FieldPath, '{'); i >= 0 {
		object += e.InvolvedObject.FieldPath[i:]
	}
	return EventColumns{
		LastSeen: lastSeen, Type: e.Type, Reason: e.Reason, Object: object, Message: strings.TrimSpace(e.Message),
		Subobject: e.InvolvedObject.FieldPath, Source: cmp.Or(e.Source.Component, status.EventSource),
		FirstSeen: podrow.Age(e.FirstTimestamp.Time, now), Count: strconv.Itoa(int(e.Count)), Name: e.Name,
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
