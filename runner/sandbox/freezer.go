package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
)

// freezableCgroup is a pod's cgroup.
type freezableCgroup interface {
	Freeze(frozen bool) error
	AwaitFrozen(limit time.Duration) error
}

// Freezer prevents starts of processes in a frozen cgroup. A fork into a frozen cgroup waits for the child's
// first steps, and blocks this whole program meanwhile: it could not even thaw the pod.
type Freezer struct {
	mu         sync.Mutex
	wantFrozen bool // no process is started any more
	frozen     bool // the cgroup is frozen
	starting   int  // processes that are being started
	changed    chan struct{}
}

func newFreezer(frozen bool) *Freezer {
	return &Freezer{wantFrozen: frozen, frozen: frozen, changed: make(chan struct{})}
}

func (f *Freezer) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Acquire waits until a process may be started. It keeps the cgroup from being frozen until Release.
func (f *Freezer) Acquire(ctx context.Context) error {
	if f == nil {
		return nil
	}
	for {
		f.mu.Lock()
		if !f.wantFrozen && !f.frozen {
			f.starting++
			f.mu.Unlock()
			return nil
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release ends a start that Acquire allowed. A nil Freezer does nothing.
func (f *Freezer) Release() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starting--
	f.broadcast()
}

// Set sets the wanted state.
func (f *Freezer) Set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wantFrozen = frozen
	f.broadcast()
}

// Apply brings the cgroup into the wanted state once no process is being started. It reports whether the
// cgroup is frozen.
func (f *Freezer) Apply(cgroup freezableCgroup) (frozen bool, err error) {
	f.mu.Lock()
	for f.wantFrozen && f.starting > 0 {
		changed := f.changed
		f.mu.Unlock()
		<-changed
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if err := cgroup.Freeze(f.wantFrozen); err != nil {
		return f.frozen, err
	}
	f.frozen = f.wantFrozen
	f.broadcast()
	return f.frozen, nil
}

// Recover thaws a cgroup whose freezing was not completed when a supervisor died. This supervisor freezes it
// again if the pod is still to be paused.
func (f *Freezer) Recover(cgroup freezableCgroup, pause lifecycle.PauseState) error {
	f.mu.Lock()
	unfinished := pause == lifecycle.PauseNone || pause == lifecycle.PausePending || pause == lifecycle.PauseFreezing
	frozen := f.frozen
	f.mu.Unlock()
	if !frozen || !unfinished {
		return nil
	}
	f.Set(false)
	_, err := f.Apply(cgroup)
	return err
}
