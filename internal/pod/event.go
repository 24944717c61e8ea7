package pod

import (
	"strings"
	"time"
	"unicode/utf8"
)

// EventType is the severity of an Event, as in Kubernetes.
type EventType string

const (
	Normal  EventType = "Normal"
	Warning EventType = "Warning"
)

// Event is something that happened to a pod, once or several times.
type Event struct {
	Seq       int64     `json:"seq"` // of its latest occurrence: higher than any before, in its log
	Type      EventType `json:"type"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Container string    `json:"container,omitempty"` // "" when it is about the pod as a whole
	Count     int       `json:"count"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
}

// EventLog is a bounded log of a pod's events. It keeps the latest of different events and counts
// similar ones (client-go: tools/record EventAggregator, eventLogger). The zero value is empty.
type EventLog struct {
	Seq    int64   `json:"seq"` // of the latest event; 0: no event
	Events []Event `json:"events,omitempty"`
}

const (
	maxEvents  = 100  // different ones
	maxMessage = 1024 // bytes; the API server's limit of an event's message

	// maxSimilar different messages of one type and reason within this interval become one event
	// (client-go: defaultAggregateMaxEvents, defaultAggregateIntervalInSeconds).
	maxSimilar    = 10
	similarWithin = 10 * time.Minute
	combined      = "(combined from similar events): "
)

// Add records that an event has happened at e.Last. The log sets its Seq, Count and First.
func (l *EventLog) Add(e Event) {
	e.Message = clip(e.Message)
	l.Seq++
	i := l.find(e)
	if i < 0 && l.similar(e) >= maxSimilar-1 {
		e.Message, e.Container = clip(combined+e.Message), ""
		i = l.combined(e)
	}
	e.Count, e.First, e.Seq = 1, e.Last, l.Seq
	if i >= 0 {
		e.Count, e.First = l.Events[i].Count+1, l.Events[i].First
		l.Events = append(l.Events[:i], l.Events[i+1:]...)
	} else if len(l.Events) >= maxEvents {
		l.Events = append(l.Events[:0], l.Events[len(l.Events)-maxEvents+1:]...)
	}
	l.Events = append(l.Events, e) // the latest is the last
}

// find returns the index of an event that differs only in its times, or -1.
func (l *EventLog) find(e Event) int {
	for i, old := range l.Events {
		if old.alike(e) && old.Container == e.Container && old.Message == e.Message {
			return i
		}
	}
	return -1
}

// combined returns the index of the event that stands for similar events, or -1.
func (l *EventLog) combined(e Event) int {
	for i, old := range l.Events {
		if old.alike(e) && strings.HasPrefix(old.Message, combined) {
			return i
		}
	}
	return -1
}

// similar counts the different messages of recent events like e.
func (l *EventLog) similar(e Event) int {
	messages := map[string]bool{}
	for _, old := range l.Events {
		if old.alike(e) && old.Message != e.Message && e.Last.Sub(old.Last) <= similarWithin {
			messages[old.Message] = true
		}
	}
	return len(messages)
}

func (e Event) alike(other Event) bool { return e.Type == other.Type && e.Reason == other.Reason }

// clip truncates a message to the size limit of an event, between two characters.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage-len("…")]
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}
