package prewarm

import (
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/handoff"
)

// removal is of what is left of an instance.
type removal struct {
	done     chan struct{}
	urgent   chan struct{} // closed once somebody waits for it
	isUrgent bool          // it is closed
	before   *removal      // of an earlier instance of the container, or nil
}

// makeUrgent has a removal, and those before it, wait for nothing else. The caller holds mu.
func (r *removal) makeUrgent() {
	for ; r != nil && !r.isUrgent; r = r.before {
		r.isUrgent = true
		close(r.urgent)
	}
}

// RemoveInBackground removes what is left of an instance, beside what happens next: a container
// that follows another need not wait for file systems to be taken down, nor share the
// processors and the disk with that. The caller holds mu.
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

// MarkDeciding is stir for a round of the loop, which ends when it has things prepared. The caller holds mu.
func (p *Pool) MarkDeciding() {
	if !p.deciding {
		p.deciding = true
		p.AddStarting(1)
	}
}

// AddStarting counts what a removal leaves the processors to: containers that are being made or
// started, and a round of the loop that is to start some. The caller holds mu.
func (p *Pool) AddStarting(n int) {
	switch p.starting += n; {
	case p.starting == 0:
		close(p.idle)
		p.idle = nil
	case p.idle == nil:
		p.idle = make(chan struct{})
	}
}

// awaitIdle waits until there is nothing of that, or somebody waits for the removal: a start
// of the same container, or the pod's end.
func (p *Pool) awaitIdle(r *removal) {
	p.mu.Lock()
	calm := p.idle
	p.mu.Unlock()
	if calm == nil {
		return
	}
	select {
	case <-calm:
	case <-r.urgent:
	}
}

// AwaitRemoval waits until nothing is left of the earlier instances of a container, whose
// cgroup is the next one's, too.
func (p *Pool) AwaitRemoval(name string) {
	p.mu.Lock()
	r := p.removing[name]
	r.makeUrgent()
	p.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// AwaitRemovals is AwaitRemoval for all containers.
func (p *Pool) AwaitRemovals(plan *pod.Plan) {
	for _, list := range plan.All() {
		for i := range list {
			p.AwaitRemoval(list[i].Name)
		}
	}
}
