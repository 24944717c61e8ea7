package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/pod"
)

// The pod's events are in the runtime directory: they are for people who look, and
// no wear of a flash is worth them. The supervisor has a file, and the commands,
// which pull images, have another.
const (
	eventsFile  = "events.json"
	fetchedFile = "events-fetched.json"
)

// WriteEvents publishes the supervisor's events.
func (p Pod) WriteEvents(l *pod.EventLog) error { return p.writeEvents(eventsFile, l) }

// AddEvents adds to the events of the commands. They may do so at once.
func (p Pod) AddEvents(events ...pod.Event) error {
	if len(events) == 0 {
		return nil
	}
	lock, err := OpenFileLock(filepath.Join(p.runtime, fetchedFile+".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	l, err := p.readEvents(fetchedFile)
	if err != nil {
		return err
	}
	for _, e := range events {
		l.Add(e)
	}
	return p.writeEvents(fetchedFile, &l)
}

// Events reads all events of the pod, the latest last. A pod that has had none, or
// whose events went with a reboot, has an empty list.
func (p Pod) Events() ([]pod.Event, error) {
	var all []pod.Event
	for _, file := range []string{fetchedFile, eventsFile} {
		l, err := p.readEvents(file)
		if err != nil {
			return nil, err
		}
		all = append(all, l.Events...)
	}
	slices.SortStableFunc(all, func(a, b pod.Event) int { return a.Last.Compare(b.Last) })
	return all, nil
}

// EventReader reads a pod's events again and again.
type EventReader struct {
	pod  Pod
	last []os.FileInfo // of the files when they were read; nil for one that was not there
}

// EventReader makes a reader that has read nothing.
func (p Pod) EventReader() *EventReader { return &EventReader{pod: p} }

// ReadNew is Events if they are others than when it was last called, else empty.
func (r *EventReader) ReadNew() ([]pod.Event, error) {
	var now []os.FileInfo
	for _, file := range []string{fetchedFile, eventsFile} {
		info, err := os.Stat(filepath.Join(r.pod.runtime, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at events of pod %s: %w", r.pod.Name, err)
		}
		now = append(now, info)
	}
	if slices.EqualFunc(r.last, now, sameVersion) {
		return nil, nil
	}
	events, err := r.pod.Events()
	if err == nil {
		r.last = now
	}
	return events, err
}

// sameVersion says whether a file that is replaced, never changed, is the same.
func sameVersion(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (p Pod) writeEvents(file string, l *pod.EventLog) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode events: %w", err)
	}
	if err := WriteVolatile(filepath.Join(p.runtime, file), b); err != nil {
		return fmt.Errorf("save events: %w", err)
	}
	return nil
}

func (p Pod) readEvents(file string) (l pod.EventLog, err error) {
	if err := readJSON(filepath.Join(p.runtime, file), &l); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read events of pod %s: %w", p.Name, err)
	}
	return l, nil
}
