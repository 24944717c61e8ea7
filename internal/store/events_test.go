package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

func TestEventsOfBothSides(t *testing.T) {
	p := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "web")
	if all, err := p.Events(); len(all) != 0 || err != nil {
		t.Fatalf("of no pod: %v, %v", all, err)
	}
	if err := os.MkdirAll(p.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	moment := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	var log pod.EventLog
	log.Add(pod.Event{Reason: "Created", Last: moment(2)})
	log.Add(pod.Event{Reason: "Started", Last: moment(2)})
	if err := p.WriteEvents(&log); err != nil {
		t.Fatal(err)
	}
	if err := p.AddEvents(pod.Event{Reason: "Pulling", Last: moment(0)}, pod.Event{Reason: "Pulled", Last: moment(1)}); err != nil {
		t.Fatal(err)
	}
	all, err := p.Events()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Reason)
	}
	if fmt.Sprint(got) != "[Pulling Pulled Created Started]" {
		t.Errorf("got %v", got)
	}
}

func TestCommandsAddEventsAtOnce(t *testing.T) {
	p := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "web")
	if err := os.MkdirAll(p.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := p.AddEvents(pod.Event{Reason: "Failed", Message: "the same", Last: time.Unix(1, 0)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := p.Events()
	if err != nil || len(got) != 1 || got[0].Count != 20 {
		t.Errorf("got %v, %v", got, err)
	}
}

// EventReader returns new events of either file once, and an error if it cannot read one.
func TestEventReader(t *testing.T) {
	p := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "web")
	if err := os.MkdirAll(p.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	r := p.EventReader()
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"nothing has happened", func() error { return nil }, 0},
		{"the supervisor's first", func() error { return p.WriteEvents(&pod.EventLog{Events: []pod.Event{{Reason: "A"}}}) }, 1},
		{"nothing new", func() error { return nil }, 0},
		{"a status", func() error { return p.WriteStatus(&pod.Status{}) }, 0},
		{"another of the same length", func() error { return p.WriteEvents(&pod.EventLog{Events: []pod.Event{{Reason: "B"}}}) }, 1},
		{"a command's", func() error { return p.AddEvents(pod.Event{Reason: "Pulled"}) }, 2},
		{"nothing new again", func() error { return nil }, 0},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if events, err := r.ReadNew(); err != nil || len(events) != step.want {
			t.Errorf("%s: %d events, want %d: %v", step.name, len(events), step.want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.RuntimeDir(), eventsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.ReadNew(); err == nil {
			t.Error("events that cannot be read are taken for none")
		}
	}
}
