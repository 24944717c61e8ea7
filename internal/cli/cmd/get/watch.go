package get

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	internalprinters "github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/printers"
)

// podWatch prints pods, and each one again when it changes.
type podWatch struct {
	*options
	names []string // empty: all

	table  podview.Table
	headed bool // the header was printed
	shown  map[string]watchedPod
}

func (v *podWatch) run(ctx context.Context) error {
	first := true
	lives := dirwatch.NewLivenessWatcher(v.dirs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go lives.Watch(ctx)
	return dirwatch.While(ctx, v.watched, lives.Changed, func() (bool, error) {
		if err := lives.Snapshot(); err != nil {
			return false, err
		}
		left, err := v.printChanges(first)
		first = false
		return left > 0 || len(v.names) == 0, err
	})
}

// watched returns the directories in which changes of pods appear.
func (v *podWatch) watched() ([]string, error) {
	return internalprinters.WatchedDirs(v.dirs, v.names, &v.PrintOptions)
}

// printChanges prints changes, and returns the number of pods. At the first call, named pods have to exist.
func (v *podWatch) printChanges(first bool) (left int, err error) {
	l, err := internalprinters.ListPods(v.dirs, v.names, &v.PrintOptions)
	if l == nil || err != nil && first {
		return 0, err
	}
	if err := v.Filter(l); err != nil {
		return 0, err
	}
	changes, err := v.changes(l)
	if err != nil || first && v.watchOnly {
		return len(l.Entries), err
	}
	return len(l.Entries), v.show(l, changes)
}

// watchedPod is a pod as it was last printed.
type watchedPod struct {
	internalprinters.Entry
	state string
}

// podChange is a change of a pod to print.
type podChange struct {
	event string // the type, as in a watch of Kubernetes
	internalprinters.Entry
}

const (
	podAdded    = "ADDED"
	podModified = "MODIFIED"
	podDeleted  = "DELETED"
)

// changes compares a listing with what was printed. Removed pods come first, because a new pod may have
// the same name.
func (v *podWatch) changes(l *internalprinters.Listing) ([]podChange, error) {
	var gone, changed []podChange
	current := map[string]watchedPod{}
	for _, e := range l.Entries {
		state, err := state(&e)
		if err != nil {
			return nil, err
		}
		key := e.Key()
		current[key] = watchedPod{e, state}
		was, shown := v.shown[key]
		switch {
		case shown && was.Pod.Manifest.UID != e.Pod.Manifest.UID:
			gone = append(gone, was.gone())
			changed = append(changed, podChange{podAdded, e})
		case !shown:
			changed = append(changed, podChange{podAdded, e})
		case was.state != state:
			changed = append(changed, podChange{podModified, e})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.shown)) {
		was := v.shown[key]
		if _, is := current[key]; is {
			continue
		}
		if slices.Contains(l.Unread, key) {
			current[key] = was
			continue
		}
		gone = append(gone, was.gone())
	}
	v.shown = current
	return append(gone, changed...), nil
}

// gone returns the pod as it was last read, as deleted. It is marked as deleting, because a pod whose end
// was not read was stopped.
func (w *watchedPod) gone() podChange {
	st := *w.Pod.Status
	st.Deleting = true
	return podChange{podDeleted, internalprinters.NewPodEntry(resource.PodInfo{Manifest: w.Pod.Manifest, Status: &st})}
}

// state returns everything that is published of a pod for comparison: its object, and the columns that
// are not in the object, without elapsed times.
func state(e *internalprinters.Entry) (string, error) {
	const age = 4
	row, err := e.Row(true, time.Now())
	if err != nil {
		return "", err
	}
	row[age] = ""
	for i, cell := range row {
		row[i], _, _ = strings.Cut(cell, " (")
	}
	object, err := e.Object()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(object)
	return fmt.Sprint(row, string(text)), err
}

// show prints each change as an object or a row.
func (v *podWatch) show(l *internalprinters.Listing, changes []podChange) error {
	if len(changes) == 0 {
		return nil
	}
	entries := make([]internalprinters.Entry, len(changes))
	for i, c := range changes {
		entries[i] = c.Entry
	}
	switch {
	case v.Printer != nil:
		return v.showObjects(changes)
	case v.Format == "name":
		return v.showNames(l.Kind, changes)
	}
	rows, err := v.Rows(&internalprinters.Listing{Kind: l.Kind, Head: l.Head, Entries: entries}, false)
	if err != nil {
		return err
	}
	if v.watchEvents {
		rows[0] = append([]string{"EVENT"}, rows[0]...)
		for i, c := range changes {
			rows[i+1] = append([]string{c.event}, rows[i+1]...)
		}
	}
	if v.headed || v.NoHeaders {
		rows = rows[1:]
	}
	v.headed = true
	return v.table.Print(v.env.Out, rows)
}

func (v *podWatch) showNames(kind string, changes []podChange) error {
	for _, c := range changes {
		event := ""
		if v.watchEvents {
			event = c.event + " "
		}
		if _, err := fmt.Fprintf(v.env.Out, "%s%s/%s\n", event, kind, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// showObjects prints one document for each change.
func (v *podWatch) showObjects(changes []podChange) error {
	for _, c := range changes {
		object, err := c.Object()
		if err != nil {
			return err
		}
		if v.watchEvents {
			object = map[string]any{"type": c.event, "object": object}
		}
		text, err := v.Printer([]any{object}, true)
		if err != nil {
			return err
		}
		if v.headed && v.Format == "yaml" {
			text = append([]byte("---\n"), text...)
		}
		if err := v.env.WriteSafe(text); err != nil {
			return err
		}
		if v.headed {
			continue
		}
		v.headed = true
		if v.Printer, _, err = printers.ParsePrinter(v.Format, true); err != nil {
			return err
		}
	}
	return nil
}
