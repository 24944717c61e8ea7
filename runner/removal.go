package runner

import (
	"github.com/podrun/podrun/pod"
)

// removal is of what is left of an instance.
type removal struct {
	done   chan struct{}
	hurry  chan struct{} // closed once somebody waits for it
	hasty  bool          // it is closed
	before *removal      // of an earlier instance of the container, or nil
}

// hasten has a removal, and those before it, wait for nothing else. The caller holds mu.
func (r *removal) hasten() {
	for ; r != nil && !r.hasty; r = r.before {
		r.hasty = true
		close(r.hurry)
	}
}

// removeBeside removes what is left of an instance, beside what happens next: a container
// that follows another need not wait for file systems to be taken down, nor share the
// processors and the disk with that. The caller holds mu.
func (p *pool) removeBeside(in instance, remove func()) {
	r := &removal{done: make(chan struct{}), hurry: make(chan struct{}), before: p.removing[in.Name]}
	p.removing[in.Name] = r
	p.busy++
	before := r.before
	go func() {
		if before != nil {
			<-before.done
		}
		p.awaitCalm(r)
		remove()
		p.estate.removed(in)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy--
		r.before = nil
		if p.removing[in.Name] == r {
			delete(p.removing, in.Name)
		}
		close(r.done)
	}()
}

// act is stir for a round of the loop, which ends when it has things prepared. The caller holds mu.
func (p *pool) act() {
	if !p.acting {
		p.acting = true
		p.stir(1)
	}
}

// stir counts what a removal leaves the processors to: containers that are being made or
// started, and a round of the loop that is to start some. The caller holds mu.
func (p *pool) stir(n int) {
	switch p.stirring += n; {
	case p.stirring == 0:
		close(p.calm)
		p.calm = nil
	case p.calm == nil:
		p.calm = make(chan struct{})
	}
}

// awaitCalm waits until there is nothing of that, or somebody waits for the removal: a start
// of the same container, or the pod's end.
func (p *pool) awaitCalm(r *removal) {
	p.mu.Lock()
	calm := p.calm
	p.mu.Unlock()
	if calm == nil {
		return
	}
	select {
	case <-calm:
	case <-r.hurry:
	}
}

// awaitRemoval waits until nothing is left of the earlier instances of a container, whose
// cgroup is the next one's, too.
func (p *pool) awaitRemoval(name string) {
	p.mu.Lock()
	r := p.removing[name]
	r.hasten()
	p.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// awaitRemovals is awaitRemoval for all containers.
func (p *pool) awaitRemovals(plan *pod.Plan) {
	for _, list := range plan.All() {
		for i := range list {
			p.awaitRemoval(list[i].Name)
		}
	}
}
