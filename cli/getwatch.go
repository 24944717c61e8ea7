package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/store"
)

// podWatch shows pods, and each again when it changes.
type podWatch struct {
	front  *front
	dirs   store.Dirs
	names  []string // none are all
	wishes *getWishes
	silent bool // only what changes

	sheet  reading.Sheet
	headed bool
	shown  map[string]string // what was shown of each pod
}

func (v *podWatch) run(ctx context.Context) error {
	v.shown = map[string]string{}
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
func (v *podWatch) watched() ([]string, error) {
	dirs, err := v.dirs.WatchDirs()
	if err != nil {
		return nil, err
	}
	places, err := listed(v.dirs, v.wishes.namespace, v.wishes.all)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if len(v.names) == 0 || slices.Contains(v.names, p.Name) {
			dirs = append(dirs, p.RuntimeDir())
		}
	}
	return dirs, nil
}

// look shows what is new, and says how many pods there are. Pods that were named have to
// be there the first time.
func (v *podWatch) look(first bool) (left int, err error) {
	l, err := listPods(v.dirs, v.names, v.wishes)
	if l == nil || err != nil && first {
		return 0, err
	}
	if err := v.wishes.choose(l); err != nil {
		return 0, err
	}
	left = len(l.entries)
	rows, err := v.wishes.rows(l, false)
	if err != nil {
		return 0, err
	}
	fresh := &listing{kind: l.kind, head: l.head}
	lines := [][]string{}
	if !v.headed && !v.wishes.noHeaders {
		lines = append(lines, rows[0])
	}
	current := map[string]string{}
	for i := range l.entries {
		e := &l.entries[i]
		key := e.key()
		if current[key], err = v.state(e); err != nil {
			return 0, err
		}
		if v.shown[key] != current[key] {
			fresh.entries, lines = append(fresh.entries, *e), append(lines, rows[i+1])
		}
	}
	v.shown = current
	if len(fresh.entries) == 0 || first && v.silent {
		return left, nil
	}
	if v.wishes.program != nil || v.wishes.format == "name" {
		for _, e := range fresh.entries {
			if err := v.front.print([]*listing{{kind: fresh.kind, entries: []entry{e}}}, v.wishes, true); err != nil {
				return 0, err
			}
		}
		return left, nil
	}
	v.headed = true
	return left, v.sheet.Print(v.front.out, lines)
}

// state is what of a pod's row changes when the pod does: all but its age, and how long
// ago it was restarted.
func (v *podWatch) state(e *entry) (string, error) {
	const age = 4
	row, err := e.row(true, time.Now())
	if err != nil {
		return "", err
	}
	row[age] = ""
	for i, cell := range row {
		row[i], _, _ = strings.Cut(cell, " (")
	}
	return fmt.Sprint(row), nil
}
