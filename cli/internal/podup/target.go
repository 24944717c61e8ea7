package podup

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// Target is one pod of the manifests.
type Target struct {
	Object  *manifest.Object
	Pod     store.Pod
	Plan    *pod.Plan
	Running bool // it was there already, made in accordance with the manifest, or changed to be so
	Started bool

	Change        *change           // what the manifest changes about one that runs; nil: nothing
	RestartCounts map[string]int    // the containers that the change restarts, with their restarts before
	ephemeral     []ephemeralTarget // ephemeral containers that the change adds
	ReplacesOld   bool              // another one has to be stopped and removed first
	Recreate      bool              // it is to be made anew whatever runs
	replacement   string            // the id of the record by which it replaces another; "": there is none
	Pinned        map[string]string // the ids of images, by their references, that names do not decide
	images        map[string]string // the ids of the plan's images, by their references
	pull          string            // by which policy its images are had; "": by their own
	Resumed       *Resumption       // nil unless a pod that was lost goes on

	AwaitsImages bool        // not all of its images are here: they are pulled while it is Pending
	Pending      bool        // what is there waits for its images
	LookedAt     time.Time   // when this command looked for them
	Pulled       bool        // they came while this command waited for them
	FailFast     bool        // and who waits for it wants to know of the first attempt that fails
	Waiting      *PendingPod // nil unless this process pulls them
	Lock         *os.File    // of its place, if this process has it before it starts the pod

	ports     map[string]*os.File // of the host, opened for it, by their names
	Successor *Successor          // nil unless its file is watched

	NotifyTarget *podinit.NotifyTarget // for a pod that systemd runs: what its supervisor gets
	NotifyConn   *os.File              // and our end of it
	Last         *pod.Status           // how it ended, once that is known
}

// ForEach does something for all pods at once.
func ForEach(pods []*Target, do func(i int, p *Target)) {
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { do(i, p) })
	}
	all.Wait()
}

// Resumption is a pod of which no process is left, and that is to go on: with its identity, its
// volumes on disk, its logs and its restart counts.
type Resumption struct {
	UID     string
	Created time.Time
}

// resume looks at what is left of a pod that does not run. One that was lost, with the
// machine or without, goes on if its manifest is the same, as a kubelet's pod does. One that
// has ended is run anew; but not by a unit that the machine's start has begun.
func (r *Run) resume(p *Target) error {
	if !p.Pod.Exists() {
		return nil
	}
	text, err := p.Pod.Manifest()
	if err != nil {
		return nil // half removed: it makes way
	}
	old, err := manifest.Unmarshal(text)
	if err != nil {
		return nil
	}
	d, err := manifest.Compare(old, p.Object.Pod)
	if err != nil || !d.Empty() {
		return err
	}
	plan, err := p.Pod.Plan()
	if err != nil || plan.UID == "" {
		return nil
	}
	st, err := p.Pod.Status()
	if err == nil && st.Deleting || p.Pod.Removing() {
		return nil
	}
	ended := err == nil && st.Phase.Terminal() && st.Reason != pod.ReasonTerminated
	switch lost := plan.RestartPolicy == pod.RestartNever && podview.HasRun(p.Pod, plan); {
	case !ended && !lost:
		p.Resumed = &Resumption{plan.UID, old.CreationTimestamp.Time}
		fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s goes on: %s\n", p.Pod.Name, podview.WhyLost(p.Pod))
	case r.Unit != nil && podview.Rebooted(p.Pod):
		p.Plan, p.Running, p.Started = plan, true, true
		fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s had ended before the machine was restarted: it is not run again\n", p.Pod.Name)
	}
	return nil
}

// Successor lets the foreground go on with the pod that --watch makes in the place of one that it
// shows. The nil renewal is of a pod that is not watched.
type Successor struct {
	mu     sync.Mutex
	busy   chan struct{} // closed when the replacement that is under way is done; nil: there is none
	next   *Target       // what it has made, until the foreground takes it
	leave  func()        // ends the showing of the pod before it
	closed bool          // the pod is being stopped: no other follows
}

// Outcome says what up makes of a pod.
func (t *Target) Outcome() string {
	switch {
	case t.Change != nil:
		return "configured"
	case t.Running:
		return "unchanged"
	case !t.Recreate && !t.ReplacesOld && t.Pod.Exists(): // it was stopped, or has ended
		return "started"
	}
	return "created"
}

// CloseNotify closes the ends of a pod.
func (t *Target) CloseNotify() {
	if t.NotifyTarget != nil {
		t.NotifyTarget.Socket.Close()
		t.NotifyConn.Close()
	}
	t.NotifyTarget, t.NotifyConn = nil, nil
}

// Begin announces a replacement, unless the pod is being stopped.
func (r *Successor) Begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.busy = make(chan struct{})
	}
	return !r.closed
}

// Close lets no other replacement begin, and returns the one that is under way, or nil.
func (r *Successor) Close() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.busy
}

// End announces its result; nil if there is none.
func (r *Successor) End(next *Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = next
	close(r.busy)
	r.busy = nil
	if next != nil && r.leave != nil { // what the place holds now is another pod's
		r.leave()
	}
}

// Show gives the context in which the pod that is there now is shown.
func (r *Successor) Show(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, leave := context.WithCancel(ctx)
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leave = leave
	}
	return ctx, leave
}

// Take waits for the replacement that is under way, and returns the pod that it has made, or nil.
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
