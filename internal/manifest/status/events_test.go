package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testmanifest"
)

func TestEvents(t *testing.T) {
	p := testmanifest.ThreePod(t).Pod
	p.UID = "u-1"
	moment := func(d time.Duration) time.Time { return testmanifest.Noon.Add(-d) }
	events := status.Events(p, []pod.Event{
		{Type: pod.Warning, Reason: "Evicted", Message: "Usage. ", Count: 1, First: moment(90 * time.Second), Last: moment(90 * time.Second)},
		{Type: pod.Normal, Reason: "Started", Container: "a", Message: "Container started", Count: 5, First: moment(time.Hour), Last: moment(7 * time.Second)},
		{Type: pod.Normal, Reason: "Started", Container: "init", Message: "Container started", Count: 1, First: moment(time.Hour), Last: moment(time.Hour)},
	})
	want := []printers.EventColumns{
		{LastSeen: "90s", Type: "Warning", Reason: "Evicted", Object: "Pod/p", Message: "Usage.", Source: "podrun", FirstSeen: "90s", Count: "1"},
		{LastSeen: "7s (x5 over 60m)", Type: "Normal", Reason: "Started", Object: "Pod/p{a}", Message: "Container started",
			Subobject: "spec.containers{a}", Source: "podrun", FirstSeen: "60m", Count: "5"},
		{LastSeen: "60m", Type: "Normal", Reason: "Started", Object: "Pod/p{init}", Message: "Container started",
			Subobject: "spec.initContainers{init}", Source: "podrun", FirstSeen: "60m", Count: "1"},
	}
	names := map[string]bool{}
	for i := range events {
		got := printers.EventRow(&events[i], testmanifest.Noon)
		names[got.Name] = true
		got.Name = ""
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Error(diff)
		}
	}
	if len(names) != len(events) {
		t.Errorf("names: %v", names)
	}
	for format, words := range map[printers.Format][]string{
		printers.YAML: {"kind: EventList", "fieldPath: spec.containers{a}", "uid: u-1", "count: 5", "firstTimestamp: \"2026"},
		printers.JSON: {`"kind": "EventList"`, `"reason": "Evicted"`, `"component": "podrun"`},
	} {
		text, err := printers.PrintEvents(events, format)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s lacks %q:\n%s", format, word, text)
			}
		}
	}
}
