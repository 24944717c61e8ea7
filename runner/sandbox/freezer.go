package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/podrun/podrun/lifecycle"
)

// freezableCgroup is a pod's cgroup.
type freezableCgroup interface {
	Freeze(frozen bool) error
	AwaitFrozen(limit time.Duration) error
}

// Freezer keeps processes from being begun in a cgroup that is frozen: who forks into one
// waits for the child's first steps, and with him all of this program, which could not even
// let the pod go on then.
type Freezer struct {
	mu       sync.Mutex
	wanted   bool // nothing is begun any more
	frozen   bool // the kernel has been told
	starting int  // processes that are being begun
	changed  chan struct{}
}

func newFreezer(frozen bool) *Freezer {
	return &Freezer{wanted: frozen, frozen: frozen, changed: make(chan struct{})}
}

func (f *Freezer) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Acquire waits until a process may be begun, and keeps the cgroup from being frozen until
// leave.
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

// Release reports that a start that was let through is over. A nil Freezer does nothing.
func (f *Freezer) Release() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starting--
	f.broadcast()
}

// Set says what is wanted from now on.
func (f *Freezer) Set(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = frozen
	f.broadcast()
}

// Apply has the kernel do what is wanted, once nothing is being begun. It says whether the
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

// Recover lets a cgroup go on that was being frozen when a supervisor died: its follower is to
// pause the pod anew, unless the pod is to end or the wish is taken back before that. Then
// nobody would thaw it.
func (f *Freezer) Recover(cgroup freezableCgroup, pause lifecycle.PauseState) error {
	f.mu.Lock()
	unfinished := pause == lifecycle.PauseNone || pause == lifecycle.PauseAsked || pause == lifecycle.PauseFreezing
	frozen := f.frozen
	f.mu.Unlock()
	if !frozen || !unfinished {
		return nil
	}
	f.Set(false)
	_, err := f.Apply(cgroup)
	return err
}
