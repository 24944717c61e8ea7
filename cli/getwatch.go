package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
)

// podWatch shows pods, and each again when it changes.
type podWatch struct {
	front  *front
	dirs   store.Dirs
	names  []string // none are all
	wishes *getWishes
	silent bool // only what changes
	events bool // say what each change is

	sheet  reading.Sheet
	headed bool // something was shown
	shown  map[string]watchedPod
}

func (v *podWatch) run(ctx context.Context) error {
	v.shown = map[string]watchedPod{}
	first := true
	lives := newLives(v.dirs)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go lives.watch(ctx)
	return whileWatching(ctx, v.watched, lives.poked, func() (bool, error) {
		if err := lives.note(); err != nil {
			return false, err
		}
		left, err := v.look(first)
		first = false
		return left > 0 || len(v.names) == 0, err
	})
}

// whileWatching calls look, and again whenever something changes in the directories that
// watched gives, or what poked gives is closed, until look wants no more or ctx ends.
func whileWatching(ctx context.Context, watched func() ([]string, error), poked func() <-chan struct{}, look func() (more bool, err error)) error {
	for {
		dirs, err := watched()
		if err != nil {
			return err
		}
		watcher := dirwatch.Watch(dirs...)
		more, err := lookWhile(ctx, watcher, dirs, watched, poked, look)
		watcher.Close()
		if err != nil || !more {
			return err
		}
	}
}

// lookWhile looks until other directories are to be watched.
func lookWhile(ctx context.Context, watcher *dirwatch.Watcher, dirs []string, watched func() ([]string, error), poked func() <-chan struct{}, look func() (bool, error)) (more bool, err error) {
	for {
		news := poked()
		// Everything is looked at once more after the watching has begun: nothing that
		// happened in between is missed.
		if more, err := look(); err != nil || !more {
			return false, err
		}
		now, err := watched()
		if err != nil {
			return false, err
		}
		if !slices.Equal(now, dirs) {
			return true, nil
		}
		select {
		case <-watcher.Any():
		case <-news:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// watched are the directories in which something changes when there is news.
func (v *podWatch) watched() ([]string, error) { return podDirs(v.dirs, v.names, v.wishes) }

// podDirs are the directories in which something changes when there is news of pods, of all
// without names.
func podDirs(dirs store.Dirs, names []string, w *getWishes) ([]string, error) {
	list, err := dirs.WatchDirs()
	if err != nil {
		return nil, err
	}
	places, err := listed(dirs, w.namespace, w.all)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			list = append(list, p.RuntimeDir())
		}
	}
	return list, nil
}

// look shows what is new, and returns how many pods there are. Pods that were named have to
// be there the first time.
func (v *podWatch) look(first bool) (left int, err error) {
	l, err := listPods(v.dirs, v.names, v.wishes)
	if l == nil || err != nil && first {
		return 0, err
	}
	if err := v.wishes.choose(l); err != nil {
		return 0, err
	}
	changes, err := v.changes(l)
	if err != nil || first && v.silent {
		return len(l.entries), err
	}
	return len(l.entries), v.show(l, changes)
}

// watchedPod is a pod as it was shown last.
type watchedPod struct {
	entry
	state string
}

// podChange is what -w shows of a pod.
type podChange struct {
	event string // as a watch of Kubernetes names it
	entry
}

const (
	podAdded    = "ADDED"
	podModified = "MODIFIED"
	podDeleted  = "DELETED"
)

// changes compares a listing with what was shown. Those that have gone come first: one may have
// the name of a pod that is new.
func (v *podWatch) changes(l *listing) ([]podChange, error) {
	var gone, changed []podChange
	current := map[string]watchedPod{}
	for _, e := range l.entries {
		state, err := e.state()
		if err != nil {
			return nil, err
		}
		key := e.key()
		current[key] = watchedPod{e, state}
		was, seen := v.shown[key]
		switch {
		case seen && was.pod.manifest.UID != e.pod.manifest.UID:
			gone = append(gone, was.gone())
			changed = append(changed, podChange{podAdded, e})
		case !seen:
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
		if slices.Contains(l.unread, key) {
			current[key] = was
			continue
		}
		gone = append(gone, was.gone())
	}
	v.shown = current
	return append(gone, changed...), nil
}

// gone is the pod as it was read last. One that was not seen to end was ended.
func (w *watchedPod) gone() podChange {
	st := *w.pod.status
	st.Deleting = true
	return podChange{podDeleted, known{w.pod.manifest, &st}.entry()}
}

// state is all that is published of a pod: its object, and of its line what the object does not
// have, without the times that pass.
func (e *entry) state() (string, error) {
	const age = 4
	row, err := e.row(true, time.Now())
	if err != nil {
		return "", err
	}
	row[age] = ""
	for i, cell := range row {
		row[i], _, _ = strings.Cut(cell, " (")
	}
	object, err := e.object()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(object)
	return fmt.Sprint(row, string(text)), err
}

// show prints changes, each as one object or one line.
func (v *podWatch) show(l *listing, changes []podChange) error {
	if len(changes) == 0 {
		return nil
	}
	entries := make([]entry, len(changes))
	for i, c := range changes {
		entries[i] = c.entry
	}
	switch {
	case v.wishes.program != nil:
		return v.showObjects(changes)
	case v.wishes.format == "name":
		return v.showNames(l.kind, changes)
	}
	rows, err := v.wishes.rows(&listing{kind: l.kind, head: l.head, entries: entries}, false)
	if err != nil {
		return err
	}
	if v.events {
		rows[0] = append([]string{"EVENT"}, rows[0]...)
		for i, c := range changes {
			rows[i+1] = append([]string{c.event}, rows[i+1]...)
		}
	}
	if v.headed || v.wishes.noHeaders {
		rows = rows[1:]
	}
	v.headed = true
	return v.sheet.Print(v.front.out, rows)
}

func (v *podWatch) showNames(kind string, changes []podChange) error {
	for _, c := range changes {
		event := ""
		if v.events {
			event = c.event + " "
		}
		if _, err := fmt.Fprintf(v.front.out, "%s%s/%s\n", event, kind, c.name); err != nil {
			return err
		}
	}
	return nil
}

// showObjects prints one document for each change.
func (v *podWatch) showObjects(changes []podChange) error {
	for _, c := range changes {
		object, err := c.object()
		if err != nil {
			return err
		}
		if v.events {
			object = map[string]any{"type": c.event, "object": object}
		}
		text, err := v.wishes.program([]any{object}, true)
		if err != nil {
			return err
		}
		if v.headed && v.wishes.format == "yaml" {
			text = append([]byte("---\n"), text...)
		}
		if err := v.front.show(text); err != nil {
			return err
		}
		if v.headed {
			continue
		}
		v.headed = true
		if v.wishes.program, _, err = printers.ParsePrinter(v.wishes.format, true); err != nil {
			return err
		}
	}
	return nil
}
