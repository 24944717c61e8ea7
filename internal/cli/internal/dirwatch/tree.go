package dirwatch

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long nothing may change until changes are reported together, and maxQuiet how long that is awaited.
const (
	quiet    = 10 * time.Millisecond
	maxQuiet = 50 * time.Millisecond
)

// Tree watches a directory with everything below it. Paths are relative to it, with slashes.
type Tree struct {
	root   string
	skip   func(name string, dir bool) bool
	known  map[string]map[string]stamp // the files of each directory; "." is the root
	notify *fsnotify.Watcher           // nil: poll at each tick
}

// stamp is what differs when a file has changed.
type stamp struct {
	mode     fs.FileMode // of a directory the type only: its files have stamps of their own
	size     int64
	inode    uint64
	modified time.Time
}

// WatchTree watches a directory from now on. If skip returns true for a path, the path is left out; a directory is left out
// with everything below it. Without inotify it polls.
func WatchTree(root string, skip func(name string, dir bool) bool) *Tree {
	t := &Tree{root: root, skip: skip, known: map[string]map[string]stamp{}}
	t.notify, _ = fsnotify.NewWatcher()
	t.scan(".", &Changes{})
	return t
}

// Close stops watching.
func (t *Tree) Close() {
	if t.notify != nil {
		t.notify.Close()
	}
}

// Changes are what has changed in a tree.
type Changes struct {
	Written []string // files and directories that are new or differ, sorted
	Removed []string // sorted; nothing below a removed directory
}

// All returns all that is in the tree, as far as it is known.
func (t *Tree) All() []string {
	var all []string
	for dir, files := range t.known {
		for name := range files {
			all = append(all, path.Join(dir, name))
		}
	}
	slices.Sort(all)
	return all
}

// Next waits until something changes. It returns no changes when ctx has ended.
func (t *Tree) Next(ctx context.Context) Changes {
	for {
		dirs, all := t.wait(ctx)
		var c Changes
		if all {
			for dir := range maps.Clone(t.known) {
				dirs[dir] = true
			}
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			if t.known[dir] != nil {
				t.scan(dir, &c)
			}
		}
		if ctx.Err() != nil || len(c.Written)+len(c.Removed) > 0 {
			slices.Sort(c.Written)
			slices.Sort(c.Removed)
			return c
		}
	}
}

// wait waits for events, and until they have ceased. It returns the directories in which there were any, or that there may
// have been some in any.
func (t *Tree) wait(ctx context.Context) (dirs map[string]bool, all bool) {
	dirs = map[string]bool{}
	if t.notify == nil {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
		}
		return dirs, true
	}
	var ceased, last <-chan time.Time
	for {
		select {
		case e := <-t.notify.Events:
			dirs[t.relative(filepath.Dir(e.Name))] = true
		case <-t.notify.Errors: // events were dropped
			all = true
		case <-ceased:
			return dirs, all
		case <-last:
			return dirs, all
		case <-ctx.Done():
			return dirs, all
		}
		if ceased = time.After(quiet); last == nil {
			last = time.After(maxQuiet)
		}
	}
}

func (t *Tree) relative(dir string) string {
	name, err := filepath.Rel(t.root, dir)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(name)
}

// scan compares a directory with what is known of it. It begins to watch a new one before it reads it.
func (t *Tree) scan(dir string, c *Changes) {
	full := filepath.Join(t.root, dir)
	before := t.known[dir]
	if before == nil && t.notify != nil && t.notify.Add(full) != nil {
		t.notify.Close() // the user's watches are used up
		t.notify = nil
	}
	entries, _ := os.ReadDir(full) // a removed directory is found in the directory above
	now := map[string]stamp{}
	t.known[dir] = now
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		info, err := entry.Info()
		if err != nil || t.skip(name, info.IsDir()) {
			continue
		}
		s := stampOf(info)
		now[entry.Name()] = s
		old, was := before[entry.Name()]
		if was && old.mode.IsDir() && old != s {
			t.forget(name)
		}
		if old != s {
			c.Written = append(c.Written, name)
		}
		if s.mode.IsDir() && t.known[name] == nil {
			t.scan(name, c)
		}
	}
	for base, old := range before {
		if _, is := now[base]; is {
			continue
		}
		name := path.Join(dir, base)
		c.Removed = append(c.Removed, name)
		if old.mode.IsDir() {
			t.forget(name)
		}
	}
}

// forget drops what is known of a directory that is gone.
func (t *Tree) forget(dir string) {
	for base, s := range t.known[dir] {
		if s.mode.IsDir() {
			t.forget(path.Join(dir, base))
		}
	}
	delete(t.known, dir)
	if t.notify != nil {
		t.notify.Remove(filepath.Join(t.root, dir))
	}
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	if info.IsDir() {
		s.mode = fs.ModeDir
		return s
	}
	s.size, s.modified = info.Size(), info.ModTime()
	return s
}
