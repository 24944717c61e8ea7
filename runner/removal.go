package runner

import (
	"fmt"
	"os"
)

// removeBeside removes what is left of an instance, beside what happens next: a container
// that follows another need not wait for file systems to be taken down. The caller holds mu.
func (e *engine) removeBeside(in instance, remove func()) {
	done, before := make(chan struct{}), e.removing[in.Name]
	e.removing[in.Name] = done
	e.busy++
	go func() {
		if before != nil {
			<-before
		}
		remove()
		e.estate.removed(in)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.busy--
		if e.removing[in.Name] == done {
			delete(e.removing, in.Name)
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
