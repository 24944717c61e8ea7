package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// A pod's events are in the runtime directory: they are for users who inspect a pod, and not worth
// wearing a flash. The supervisor has one file, and the commands, which pull images, have another.
const (
	eventsFile  = "events.json"
	fetchedFile = "events-fetched.json"
)

// WriteEvents publishes the supervisor's events.
func (p Pod) WriteEvents(l *pod.EventLog) error { return p.writeEvents(eventsFile, l) }

// AddEvents adds events of a command. Several commands may do so at once.
func (p Pod) AddEvents(events ...pod.Event) error {
	if len(events) == 0 {
		return nil
	}
	lock, err := LockExclusive(filepath.Join(p.runtime, fetchedFile+".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := p.readEvents(fetchedFile)
	if err != nil {
		return err
	}
	for _, e := range events {
		l.Add(e)
	}
	return p.writeEvents(fetchedFile, &l)
}

// Events returns all events of the pod, the latest last. The list is empty for a pod without
// events, or after a reboot.
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

// EventReader reads a pod's events repeatedly.
type EventReader struct {
	pod  Pod
	last []os.FileInfo // of the files when they were read; nil for a missing one
}

// EventReader returns a reader that has read nothing.
func (p Pod) EventReader() *EventReader { return &EventReader{pod: p} }

// ReadNew returns Events if they have changed since the last call, otherwise nothing.
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

// sameVersion reports whether two results of stat are of the same version of a file that is only
// ever replaced.
func sameVersion(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (p Pod) writeEvents(file string, l *pod.EventLog) error {
	if err := writeJSON(WriteVolatile, filepath.Join(p.runtime, file), l); err != nil {
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
