package runner

import (
	"fmt"
	"os"
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
func (e *engine) removeBeside(in instance, remove func()) {
	r := &removal{done: make(chan struct{}), hurry: make(chan struct{}), before: e.removing[in.Name]}
	e.removing[in.Name] = r
	e.busy++
	before := r.before
	go func() {
		if before != nil {
			<-before.done
		}
		e.awaitCalm(r)
		remove()
		e.estate.removed(in)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.busy--
		r.before = nil
		if e.removing[in.Name] == r {
			delete(e.removing, in.Name)
		}
		close(r.done)
	}()
}

// stir counts what a removal leaves the processors to: containers that are being made or
// started, and a round of the loop that is to start some. The caller holds mu.
func (e *engine) stir(n int) {
	switch e.stirring += n; {
	case e.stirring == 0:
		close(e.calm)
		e.calm = nil
	case e.calm == nil:
		e.calm = make(chan struct{})
	}
}

// awaitCalm waits until there is nothing of that, or somebody waits for the removal: a start
// of the same container, or the pod's end.
func (e *engine) awaitCalm(r *removal) {
	e.mu.Lock()
	calm := e.calm
	e.mu.Unlock()
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
func (e *engine) awaitRemoval(name string) {
	e.mu.Lock()
	r := e.removing[name]
	r.hasten()
	e.mu.Unlock()
	if r != nil {
		<-r.done
	}
}

// awaitRemovals is awaitRemoval for all containers.
func (e *engine) awaitRemovals() {
	for _, list := range e.current().All() {
		for i := range list {
			e.awaitRemoval(list[i].Name)
		}
	}
}

// remove takes down what was made for an instance of which no process is left.
func (x *container) remove() {
	if err := x.cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "remove container %s: %v\n", x.plan.Name, err)
	}
}
