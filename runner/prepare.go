package runner

import (
	"context"
	"runtime"
	"slices"
	"sync"

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

// pool makes containers before their time, and removes what is left of those that have ended, beside
// the loop.
type pool struct {
	mu     *sync.Mutex // the engine's
	estate *estate

	prepared map[string]*prepared // by container name
	turns    chan struct{}        // has room for as many as are prepared at a time
	removing map[string]*removal  // by container name: see removeBeside
	stirring int                  // see stir
	calm     chan struct{}        // nil while nothing stirs
	acting   bool                 // the loop has yet to do what it has decided
	busy     int                  // containers that are being made or removed
}

func newPool(mu *sync.Mutex, left *estate) *pool {
	return &pool{mu: mu, estate: left, prepared: map[string]*prepared{}, turns: make(chan struct{}, runtime.NumCPU()), removing: map[string]*removal{}}
}

// prepare has those containers made, and no others, that are likely to be started next in s: each
// up to the moment at which it executes its program. Until then nobody is told of them. A
// supervisor that is killed leaves them to the next one, which removes them. first: s is being
// made. The caller holds mu.
func (p *pool) prepare(plan *pod.Plan, s *sandbox, first bool, starts []lifecycle.Action) {
	if p.acting { // it was done
		p.acting = false
		p.stir(-1)
	}
	for name, early := range p.prepared {
		c, _ := plan.Container(name)
		if early.sandbox != s || early.of != c || !slices.ContainsFunc(starts, func(a lifecycle.Action) bool {
			return a.Container == name && a.Attempt == early.attempt
		}) {
			p.discard(name, early)
		}
	}
	for _, a := range starts {
		c, ok := plan.Container(a.Container)
		if p.prepared[a.Container] != nil || !ok || s == nil || s.trampoline == nil || !preparable(plan, c, first) {
			continue
		}
		early := &prepared{sandbox: s, of: c, attempt: a.Attempt, first: first, made: make(chan struct{})}
		early.context, early.cancel = context.WithCancel(context.Background())
		p.prepared[a.Container] = early
		p.busy++
		go p.makeEarly(early, p.removing[a.Container])
	}
}

// start is for a container that is to be started: it returns what was prepared for it, or nil. The
// caller holds mu, and calls stir(-1) once it was started.
func (p *pool) start(name string) *prepared {
	p.stir(1)
	early := p.prepared[name]
	delete(p.prepared, name)
	return early
}

// makeEarly makes a container that is to wait, when its turn comes.
func (p *pool) makeEarly(early *prepared, before *removal) {
	defer p.endWork()
	defer close(early.made)
	if !p.awaitTurn(early, before) {
		return
	}
	defer p.endTurn()
	in := instance{early.of.Name, early.attempt}
	p.estate.record(func(s *state) { s.Remains = append(s.Remains, in) })
	x := newContainer(early.sandbox, early.of, early.attempt)
	x.early, x.first = true, early.first
	if err := x.make(early.context, early.sandbox); err != nil {
		p.estate.removed(in)
		return
	}
	early.x = x
}

// awaitTurn waits until a container can be made, nothing is left of the one before, and a
// processor is to be had. It says whether it is still to be made.
func (p *pool) awaitTurn(early *prepared, before *removal) bool {
	select {
	case <-early.sandbox.laid:
	case <-early.context.Done():
		return false
	}
	if before != nil {
		<-before.done
	}
	select {
	case p.turns <- struct{}{}:
	case <-early.context.Done():
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if early.begun = early.context.Err() == nil; !early.begun {
		<-p.turns
		return false
	}
	p.stir(1)
	return true
}

// endTurn lets another container be made.
func (p *pool) endTurn() {
	<-p.turns
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stir(-1)
}

// discard removes what was prepared and is not needed. The caller holds mu.
func (p *pool) discard(name string, early *prepared) {
	delete(p.prepared, name)
	early.cancel()
	p.removeBeside(instance{name, early.attempt}, func() {
		<-early.made
		if early.x != nil {
			early.x.giveUp(early.sandbox)
		}
	})
}

// takePrepared gives what was prepared for a start, if it is just what would be made now.
// Anything else is discarded.
func (p *pool) takePrepared(early *prepared, s *sandbox, c *pod.Container, attempt int) *container {
	if early == nil || !p.claim(early) {
		return nil
	}
	<-early.made
	if early.x != nil && early.sandbox == s && early.attempt == attempt && early.of == c && early.x.upToDate(s) {
		early.cancel()
		return early.x
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discard(c.Name, early)
	return nil
}

// claim says whether a container is being made, or has been. One that still waits for its turn
// is kept from it: it is needed now, whatever else is being made.
func (p *pool) claim(early *prepared) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !early.begun {
		early.cancel()
	}
	return early.begun
}

func (p *pool) endWork() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}
