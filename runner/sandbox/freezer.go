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

// Freezer prevents starts of processes in a frozen cgroup. A process that forks into a frozen cgroup waits
// for the child's first steps, and with it this whole program, which then could not even thaw the pod.
type Freezer struct {
	mu       sync.Mutex
	wanted   bool // no process is started any more
	frozen   bool // the cgroup is frozen
	starting int  // processes that are being started
	changed  chan struct{}
}

func newFreezer(frozen bool) *Freezer {
	return &Freezer{wanted: frozen, frozen: frozen, changed: make(chan struct{})}
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
		if !f.wanted && !f.frozen {
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
	f.wanted = frozen
	f.broadcast()
}

// Apply brings the cgroup into the wanted state once no process is being started. It reports whether the
// cgroup is frozen.
func (f *Freezer) Apply(cgroup freezableCgroup) (frozen bool, err error) {
	f.mu.Lock()
	for f.wanted && f.starting > 0 {
		changed := f.changed
		f.mu.Unlock()
		<-changed
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if err := cgroup.Freeze(f.wanted); err != nil {
		return f.frozen, err
	}
	f.frozen = f.wanted
	f.broadcast()
	return f.frozen, nil
}

// Recover thaws a cgroup that was being frozen when a supervisor died. The next supervisor pauses the pod
// again, unless the pod ends or is resumed before: then nothing else would thaw it.
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
