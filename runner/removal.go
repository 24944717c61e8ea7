package runner

import (
	"fmt"
	"os"
)

// removeBeside removes an instance whose end is on record, beside what follows from it: the
// next container need not wait for file systems to be taken down. The caller holds mu.
func (e *engine) removeBeside(x *container) {
	name, done, before := x.plan.Name, make(chan struct{}), e.removing[x.plan.Name]
	e.removing[name] = done
	e.busy++
	go func() {
		if before != nil {
			<-before
		}
		x.remove()
		e.estate.removed(instance{name, x.attempt})
		e.mu.Lock()
		defer e.mu.Unlock()
		e.busy--
		if e.removing[name] == done {
			delete(e.removing, name)
		}
		close(done)
	}()
}

// awaitRemoval waits until nothing is left of the earlier instances of a container, whose
// cgroup is the next one's, too.
func (e *engine) awaitRemoval(name string) {
	e.mu.Lock()
	done := e.removing[name]
	e.mu.Unlock()
	if done != nil {
		<-done
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
