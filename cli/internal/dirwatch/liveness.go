package dirwatch

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// livenessInterval is between two looks which pods live.
const livenessInterval = time.Second

// LivenessWatcher tells those who watch that other pods live than before: of a pod that is killed, guard
// and all, no file tells.
type LivenessWatcher struct {
	dirs store.Dirs

	mu    sync.Mutex
	seen  string        // the pods that lived when they were looked at
	other chan struct{} // closed when others live now
}

// NewLivenessWatcher returns a watcher of the pods below dirs. Watch has to be called.
func NewLivenessWatcher(dirs store.Dirs) *LivenessWatcher {
	return &LivenessWatcher{dirs: dirs, other: make(chan struct{})}
}

// Changed is closed when other pods live than when note was called last.
func (w *LivenessWatcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.other
}

// Snapshot says that pods are looked at now. It comes before the look: who dies after that is
// missed, which check sees.
func (w *LivenessWatcher) Snapshot() error {
	living, err := w.living()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = living
	return nil
}

// Check looks whether others live now.
func (w *LivenessWatcher) Check() {
	living, err := w.living()
	if err != nil {
		return // who looks at the pods hears of it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if living != w.seen {
		close(w.other)
		w.other = make(chan struct{})
	}
}

// Watch checks now and then, until ctx ends.
func (w *LivenessWatcher) Watch(ctx context.Context) {
	tick := time.NewTicker(livenessInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.Check()
		case <-ctx.Done():
			return
		}
	}
}

// living names the pods that live.
func (w *LivenessWatcher) living() (string, error) {
	places, err := w.dirs.Pods()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range places {
		if p.Alive() {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, " "), nil
}
