package prepared

import (
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/handoff"
)

// removal is the removal of what is left of an instance.
type removal struct {
	done     chan struct{}
	urgent   chan struct{} // closed once another operation waits for it
	isUrgent bool          // urgent is closed
	before   *removal      // the removal of an earlier instance of the container, or nil
}

// makeUrgent lets a removal, and those before it, run without waiting for idle processors. The caller holds
// mu.
func (r *removal) makeUrgent() {
	for ; r != nil && !r.isUrgent; r = r.before {
		r.isUrgent = true
		close(r.urgent)
	}
}

// RemoveInBackground removes what is left of an instance concurrently. Containers that are being started do not
// wait for the removal, and do not share processors and disk with it. The caller holds mu.
func (p *Pool) RemoveInBackground(in handoff.Instance, remove func()) {
	r := &removal{done: make(chan struct{}), urgent: make(chan struct{}), before: p.removing[in.Name]}
	p.removing[in.Name] = r
	p.Busy++
	before := r.before
	go func() {
		if before != nil {
			<-before.done
		}
		p.awaitIdle(r)
		remove()
		p.handoff.ForgetInstance(in)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Busy--
		r.before = nil
		if p.removing[in.Name] == r {
			delete(p.removing, in.Name)
		}
		close(r.done)
	}()
}

// MarkDeciding delays removals during a round of the loop, until the round calls Prepare. The caller holds
// mu.
func (p *Pool) MarkDeciding() {
	if !p.deciding {
		p.deciding = true
		p.AddStarting(1)
	}
}

// AddStarting counts the work for which removals wait: containers that are being made or started, and a
// round of the loop that may start some. The caller holds mu.
func (p *Pool) AddStarting(n int) {
	switch p.starting += n; {
	case p.starting == 0:
		close(p.allStarted)
		p.allStarted = nil
	case p.allStarted == nil:
		p.allStarted = make(chan struct{})
	}
}

// awaitIdle waits until AddStarting counts no work, or until another operation waits for the removal: a start of
// the same container, or the pod's end.
func (p *Pool) awaitIdle(r *removal) {
	p.mu.Lock()
	calm := p.allStarted
	p.mu.Unlock()
	if calm == nil {
		return
	}
	select {
	case <-calm:
	case <-r.urgent:
	}
}

// AwaitRemoval waits until nothing is left of the earlier instances of a container: the next one uses the
// same cgroup.
func (p *Pool) AwaitRemoval(name string) {
	p.mu.Lock()
	r := p.removing[name]
	r.makeUrgent()
	p.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// AwaitRemovals calls AwaitRemoval for all containers.
func (p *Pool) AwaitRemovals(plan *pod.Plan) {
	for _, list := range plan.All() {
		for i := range list {
			p.AwaitRemoval(list[i].Name)
		}
	}
}
