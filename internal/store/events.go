package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
