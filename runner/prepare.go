package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/podrun/podrun/environ"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// prepared is a container that is being made before its time, or has been.
type prepared struct {
	sandbox *sandbox
	of      *pod.Container
	attempt int
	first   bool // there is no other container in the sandbox that runs
	context context.Context
	cancel  context.CancelFunc
	begun   bool          // its turn has come: who needs it waits until it is made. By the engine's mu
	made    chan struct{} // closed when it is known what has become of it
	x       *container    // nil: it was not made, or could not be; its own start tells why
}

// prepare has those containers made, and no others, that are likely to be started next: each
// up to the moment at which it executes its program. Until then nobody is told of them. A
// supervisor that is killed leaves them to the next one, which removes them.
func (e *engine) prepare(starts []lifecycle.Action) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.acting { // it was done
		e.acting = false
		e.stir(-1)
	}
	s := e.sandbox
	if e.rising != nil {
		s = e.rising
	}
	for name, p := range e.prepared {
		c, _ := e.plan.Container(name)
		if p.sandbox != s || p.of != c || !slices.ContainsFunc(starts, func(a lifecycle.Action) bool {
			return a.Container == name && a.Attempt == p.attempt
		}) {
			e.discard(name, p)
		}
	}
	for _, a := range starts {
		c, ok := e.plan.Container(a.Container)
		if e.prepared[a.Container] != nil || !ok || s == nil || s.trampoline == nil || !preparable(e.plan, c, s == e.rising) {
			continue
		}
		p := &prepared{sandbox: s, of: c, attempt: a.Attempt, first: s == e.rising, made: make(chan struct{})}
		p.context, p.cancel = context.WithCancel(context.Background())
		e.prepared[a.Container] = p
		e.busy++
		go e.makeEarly(p, e.removing[a.Container])
	}
}

// makeEarly makes a container that is to wait, when its turn comes.
func (e *engine) makeEarly(p *prepared, before *removal) {
	defer e.work(-1)
	defer close(p.made)
	if !e.awaitTurn(p, before) {
		return
	}
	defer e.endTurn()
	in := instance{p.of.Name, p.attempt}
	e.estate.record(func(s *state) { s.Remains = append(s.Remains, in) })
	x := newContainer(p.sandbox, p.of, p.attempt)
	x.early, x.first = true, p.first
	if err := x.make(p.context, p.sandbox); err != nil {
		e.estate.removed(in)
		return
	}
	p.x = x
}

// awaitTurn waits until a container can be made, nothing is left of the one before, and a
// processor is to be had. It says whether it is still to be made.
func (e *engine) awaitTurn(p *prepared, before *removal) bool {
	select {
	case <-p.sandbox.laid:
	case <-p.context.Done():
		return false
	}
	if before != nil {
		<-before.done
	}
	select {
	case e.turns <- struct{}{}:
	case <-p.context.Done():
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.begun = p.context.Err() == nil; !p.begun {
		<-e.turns
		return false
	}
	e.stir(1)
	return true
}

// endTurn lets another container be made.
func (e *engine) endTurn() {
	<-e.turns
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stir(-1)
}

// discard removes what was prepared and is not needed. The caller holds mu.
func (e *engine) discard(name string, p *prepared) {
	delete(e.prepared, name)
	p.cancel()
	e.removeBeside(instance{name, p.attempt}, func() {
		<-p.made
		if p.x != nil {
			p.x.giveUp(p.sandbox)
		}
	})
}

// takePrepared gives what was prepared for a start, if it is just what would be made now.
// Anything else is discarded.
func (e *engine) takePrepared(p *prepared, s *sandbox, c *pod.Container, attempt int) *container {
	if p == nil || !e.claim(p) {
		return nil
	}
	<-p.made
	if p.x != nil && p.sandbox == s && p.attempt == attempt && p.of == c && p.x.upToDate(s) {
		p.cancel()
		return p.x
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.discard(c.Name, p)
	return nil
}

// claim says whether a container is being made, or has been. One that still waits for its turn
// is kept from it: it is needed now, whatever else is being made.
func (e *engine) claim(p *prepared) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !p.begun {
		p.cancel()
	}
	return p.begun
}

// upToDate says whether a container that was made early is as it would be made now: its
// process lives, and what its environment refers to is the same.
func (x *container) upToDate(s *sandbox) bool {
	if st, ok := stat(x.PID); !ok || st.process != x.process || st.ending {
		return false
	}
	env, err := environ.Resolve(s.plan, x.plan, s.sources())
	return err == nil && slices.Equal(env.Env, x.env) && slices.Equal(env.Args, x.args)
}

// giveUp removes a container whose process waits, or was never made.
func (x *container) giveUp(s *sandbox) {
	if x.waiting != nil {
		x.waiting.kill()
		x.waiting.close()
	}
	x.closeStreams(s.estate)
	if err := x.cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "undo start of %s: %v\n", x.plan.Name, err)
	}
}

// errLate is a container that libcontainer would look into before its time.
var errLate = errors.New("it cannot be made early: libcontainer loads its filter")

// errLinked is a container that may have mounts in mounts: by links of its image, whose paths
// do not tell, so that places would be made in a volume that others see.
var errLinked = errors.New("it cannot be made early: its mounts lie behind links")

// discardPrepared removes all that was prepared, and whatever else is being removed.
func (e *engine) discardPrepared() {
	e.prepare(nil)
	e.awaitRemovals()
}
