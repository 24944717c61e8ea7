// Package dirwatch watches directories for changes.
package dirwatch

import (
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// tick is the polling interval for directories without notification by the kernel: the user's inotify
// instances are used up, or the file system has none.
const tick = 250 * time.Millisecond

// Watcher notifies subscribers of changes in directories.
type Watcher struct {
	any    chan struct{}
	notify *fsnotify.Watcher // nil: poll at each tick
	wake   map[string]chan struct{}
	stop   chan struct{}
	ended  chan struct{}
}

// Watch starts watching directories. It cannot fail: without inotify it polls.
func Watch(dirs ...string) *Watcher {
	w := &Watcher{any: make(chan struct{}, 1), wake: map[string]chan struct{}{}, stop: make(chan struct{}), ended: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		w.wake[dir] = make(chan struct{}, 1)
		if err == nil {
			err = notify.Add(dir)
		}
	}
	if err == nil {
		w.notify = notify
		go w.listen()
		return w
	}
	if notify != nil {
		notify.Close()
	}
	go w.tick()
	return w
}

// Wake returns the channel of one watched directory.
func (w *Watcher) Wake(dir string) <-chan struct{} { return w.wake[filepath.Clean(dir)] }

// Any returns the channel of all watched directories.
func (w *Watcher) Any() <-chan struct{} { return w.any }

// Close stops watching.
func (w *Watcher) Close() {
	close(w.stop)
	<-w.ended
	if w.notify != nil {
		w.notify.Close()
	}
}

func (w *Watcher) listen() {
	defer close(w.ended)
	for {
		select {
		case e := <-w.notify.Events:
			w.wakeUp(filepath.Dir(e.Name))
		case <-w.notify.Errors: // events were dropped: anything may have changed
			w.wakeAll()
		case <-w.stop:
			return
		}
	}
}

func (w *Watcher) tick() {
	defer close(w.ended)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.wakeAll()
		case <-w.stop:
			return
		}
	}
}

func (w *Watcher) wakeAll() {
	for dir := range w.wake {
		w.wakeUp(dir)
	}
}

func (w *Watcher) wakeUp(dir string) {
	for _, ch := range []chan struct{}{w.wake[dir], w.any} {
		select {
		case ch <- struct{}{}:
		default: // the last change is not read yet
		}
	}
}
