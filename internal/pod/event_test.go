package pod

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(s int) time.Time { return born.Add(time.Duration(s) * time.Second) }

func TestEventsThatAreTheSameAreCounted(t *testing.T) {
	var l EventLog
	for i := range 3 {
		l.Add(Event{Type: Warning, Reason: "BackOff", Container: "a", Message: "waits", Last: at(10 * i)})
		l.Add(Event{Type: Warning, Reason: "BackOff", Container: "b", Message: "waits", Last: at(10*i + 1)})
	}
	l.Add(Event{Type: Normal, Reason: "BackOff", Container: "b", Message: "waits", Last: at(30)})
	want := []Event{
		{Seq: 5, Type: Warning, Reason: "BackOff", Container: "a", Message: "waits", Count: 3, First: at(0), Last: at(20)},
		{Seq: 6, Type: Warning, Reason: "BackOff", Container: "b", Message: "waits", Count: 3, First: at(1), Last: at(21)},
		{Seq: 7, Type: Normal, Reason: "BackOff", Container: "b", Message: "waits", Count: 1, First: at(30), Last: at(30)},
	}
	if fmt.Sprint(l.Events) != fmt.Sprint(want) || l.Seq != 7 {
		t.Errorf("got %v, seq %d\nwant %v", l.Events, l.Seq, want)
	}
}

func TestEventsThatAreAlikeBecomeOne(t *testing.T) {
	var l EventLog
	for i := range 30 {
		l.Add(Event{Type: Warning, Reason: "Failed", Message: fmt.Sprint("error ", i), Last: at(i)})
	}
	if len(l.Events) != maxSimilar {
		t.Fatalf("%d events, want %d: %v", len(l.Events), maxSimilar, l.Events)
	}
	last := l.Events[maxSimilar-1]
	if last.Count != 21 || last.Message != combined+"error 29" || last.First != at(9) {
		t.Errorf("the last is %+v", last)
	}
	// After a quiet period a similar event is a new one.
	l.Add(Event{Type: Warning, Reason: "Failed", Message: "error 99", Last: at(3600)})
	if got := l.Events[len(l.Events)-1].Message; got != "error 99" {
		t.Errorf("an hour later: %q", got)
	}
}

// TestEventsOfManyContainers: events of different containers are not similar.
func TestEventsOfManyContainers(t *testing.T) {
	var l EventLog
	for i := range 30 {
		l.Add(Event{Type: Warning, Reason: "OOMKilled", Container: fmt.Sprint("c", i), Message: "killed", Last: at(i)})
	}
	if len(l.Events) != 30 || l.Events[29].Container != "c29" || l.Events[29].Message != "killed" {
		t.Errorf("%d events, the last %+v", len(l.Events), l.Events[len(l.Events)-1])
	}
}

func TestEventLogIsBounded(t *testing.T) {
	var l EventLog
	for i := range 3 * maxEvents {
		l.Add(Event{Type: Normal, Reason: fmt.Sprint("R", i), Message: strings.Repeat("é", 5000), Last: at(i)})
	}
	if len(l.Events) != maxEvents || l.Events[0].Reason != fmt.Sprint("R", 2*maxEvents) || l.Seq != 3*maxEvents {
		t.Errorf("%d events from %s on, seq %d", len(l.Events), l.Events[0].Reason, l.Seq)
	}
	if m := l.Events[0].Message; len(m) > maxMessage || !utf8.ValidString(m) || !strings.HasSuffix(m, "é…") {
		t.Errorf("a message of %d bytes, ending with %q", len(m), m[len(m)-8:])
	}
}
