package podup

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// Target is one pod of the manifests.
type Target struct {
	Object  *manifest.Object
	UID     string       // of a new pod; "": it gets one
	Cluster *pod.Cluster // nil: the resumed pod's, if it has one
	Pod     store.Pod
	Plan    *pod.Plan
	upplan.Step
	Started bool // it runs now, or has ended for good

	RestartCounts map[string]int    // restart counts, before the change, of the containers that it restarts
	ephemeral     []Ephemeral       // ephemeral containers that the change adds
	Recreate      bool              // create it again even if an equal one runs
	replacement   string            // the ID of its replacement record; "" if there is none
	Pinned        map[string]string // image IDs by reference, where names do not determine them
	images        map[string]string // the image IDs of the Plan, by reference
	pull          string            // the pull policy for all its images; "": each has its own

	LookedAt   time.Time     // when this command searched for the images
	Pending    *pull.Pending // nil unless this process pulls the images, or waits for other pods
	Lock       *os.File      // the pod's lock, if this process takes it before the start
	settled    chan struct{} // closed when the pod was started or not; nil in a run without order
	settleOnce sync.Once

	ports     map[string]*os.File // opened host ports, by their names
	failure   string              // why the process that replaces the pod has failed, which it has printed
	Successor *Successor          // nil unless --watch watches its file

	NotifyTarget *podinit.NotifyTarget // for a pod of a systemd unit: what its supervisor gets
	NotifyConn   *os.File              // the unit's end of that connection
	Last         *pod.Status           // its last status, once it has ended
}

// Settled returns a channel that is closed when the pod was started or not.
func (t *Target) Settled() <-chan struct{} { return t.settled }

func (t *Target) settle() { t.settleOnce.Do(func() { close(t.settled) }) }

// ForEach calls do for all pods concurrently, and waits.
func ForEach(pods []*Target, do func(i int, p *Target)) {
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { do(i, p) })
	}
	all.Wait()
}

// Successor hands the pod that --watch recreates to the foreground, which still follows the old one. A nil
// Successor belongs to a pod that is not watched.
type Successor struct {
	mu            sync.Mutex
	busy          chan struct{} // closed when the current replacement is done; nil if there is none
	next          *Target       // the new pod, until the foreground takes it
	stopFollowing func()        // cancels the context in which the foreground follows the old pod
	closed        bool          // the pod is being stopped: no replacement may begin
}

// Outcome returns the word for what up does with a pod.
func (t *Target) Outcome() string {
	switch {
	case t.Action == upplan.Change:
		return "configured"
	case t.Action == upplan.Keep:
		return "unchanged"
	case t.Action == upplan.Create && !t.Recreate && t.Pod.Exists(): // the pod was stopped, or has ended
		return "started"
	}
	return "created"
}

// Explain returns the error of a run, or why the processes that replace its pods have failed if only they have printed it.
func (r *Run) Explain(err error) error {
	if e := exitcode.As(err); e == nil || e.Err != nil {
		return err
	}
	for _, p := range r.Targets {
		if p.failure != "" {
			return fmt.Errorf("cannot replace pod %s: %s", p.Pod.Name, p.failure)
		}
	}
	return err
}

// RanBefore reports whether the pod ran before the command, which keeps or changes it.
func (t *Target) RanBefore() bool { return t.Action == upplan.Keep || t.Action == upplan.Change }

// CloseNotify closes the descriptors of a pod's connection to systemd.
func (t *Target) CloseNotify() {
	if t.NotifyTarget != nil {
		t.NotifyTarget.Socket.Close()
		t.NotifyConn.Close()
	}
	t.NotifyTarget, t.NotifyConn = nil, nil
}

// Begin reports the start of a replacement. It returns false if the pod is being stopped.
func (r *Successor) Begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.busy = make(chan struct{})
	}
	return !r.closed
}

// Close prevents further replacements, and returns the channel of the current one, or nil.
func (r *Successor) Close() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.busy
}

// End reports the result of a replacement; nil if it failed.
func (r *Successor) End(next *Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = next
	close(r.busy)
	r.busy = nil
	if next != nil && r.stopFollowing != nil { // the directory now belongs to the new pod
		r.stopFollowing()
	}
}

// Show returns the context in which the current pod is shown.
func (r *Successor) Show(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, leave := context.WithCancel(ctx)
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stopFollowing = leave
	}
	return ctx, leave
}

// Take waits for the current replacement, and returns the pod that it has made, or nil.
func (r *Successor) Take() *Target {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	busy := r.busy
	r.mu.Unlock()
	if busy != nil {
		<-busy
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	return next
}
