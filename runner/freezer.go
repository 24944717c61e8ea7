package runner

import (
	"context"
	"sync"
	"time"

	"github.com/podrun/podrun/lifecycle"
)

// freezable is a pod's cgroup.
type freezable interface {
	Freeze(frozen bool) error
	AwaitFrozen(limit time.Duration) error
}

// freezer keeps processes from being begun in a cgroup that is frozen: who forks into one
// waits for the child's first steps, and with him all of this program, which could not even
// let the pod go on then.
type freezer struct {
	mu      sync.Mutex
	wanted  bool // nothing is begun any more
	frozen  bool // the kernel has been told
	begun   int  // processes that are being begun
	changed chan struct{}
}

func newFreezer(frozen bool) *freezer {
	return &freezer{wanted: frozen, frozen: frozen, changed: make(chan struct{})}
}

func (f *freezer) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// enter waits until a process may be begun, and keeps the cgroup from being frozen until
// leave.
func (f *freezer) enter(ctx context.Context) error {
	if f == nil {
		return nil
	}
	for {
		f.mu.Lock()
		if !f.wanted && !f.frozen {
			f.begun++
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

func (f *freezer) leave() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun--
	f.tell()
}

// want says what is wanted from now on.
func (f *freezer) want(frozen bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = frozen
	f.tell()
}

// follow has the kernel do what is wanted, once nothing is being begun. It says whether the
// cgroup is frozen.
func (f *freezer) follow(cgroup freezable) (frozen bool, err error) {
	f.mu.Lock()
	for f.wanted && f.begun > 0 {
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
	f.tell()
	return f.frozen, nil
}

// takeUp lets a cgroup go on that was being frozen when a supervisor died: its follower is to
// pause the pod anew, unless the pod is to end or the wish is taken back before that. Then
// nobody would thaw it.
func (f *freezer) takeUp(cgroup freezable, pause lifecycle.PauseState) error {
	f.mu.Lock()
	unfinished := pause == lifecycle.PauseNone || pause == lifecycle.PauseAsked || pause == lifecycle.PauseFreezing
	frozen := f.frozen
	f.mu.Unlock()
	if !frozen || !unfinished {
		return nil
	}
	f.want(false)
	_, err := f.follow(cgroup)
	return err
}
