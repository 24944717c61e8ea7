package dirwatch

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// livenessInterval is the interval at which the running pods are polled.
const livenessInterval = time.Second

// LivenessWatcher polls which pods are alive, because killing a whole pod with its monitor changes no
// watched file.
type LivenessWatcher struct {
	dirs store.Dirs

	mu      sync.Mutex
	seen    string        // the pods that were alive at the last snapshot
	changed chan struct{} // closed when the living pods differ from it
}

// NewLivenessWatcher returns a watcher of the pods below dirs. The caller has to call Watch.
func NewLivenessWatcher(dirs store.Dirs) *LivenessWatcher {
	return &LivenessWatcher{dirs: dirs, changed: make(chan struct{})}
}

// Changed returns a channel that is closed when the living pods differ from the last snapshot.
func (w *LivenessWatcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Snapshot records which pods are alive. The caller calls it before it reads the pods, so that Check
// notices a pod that dies in between.
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

// Check compares the living pods with the snapshot.
func (w *LivenessWatcher) Check() {
	living, err := w.living()
	if err != nil {
		return // a reader of the pods gets the same error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if living != w.seen {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// Watch calls Check at intervals until ctx ends.
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

// living returns the names of the living pods.
func (w *LivenessWatcher) living() (string, error) {
	pods, err := w.dirs.Pods()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range pods {
		if p.Alive() {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, " "), nil
}
