package prewarm

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// Prepared is a container that is made before it is due.
type Prepared struct {
	sandbox   *sandbox.Sandbox
	plan      *pod.Container
	attempt   int
	first     bool // no other container of the sandbox runs
	context   context.Context
	cancel    context.CancelFunc
	started   bool                 // it is being made, and its start waits for it. Guarded by the engine's mu
	Made      chan struct{}        // closed when the result is known
	Container *container.Container // nil: it was not made or failed; the regular start reports the error
}

// Pool makes containers before they are due, and removes ended ones, concurrently with the loop.
type Pool struct {
	mu      *sync.Mutex // the engine's
	handoff *handoff.Store

	Prepared map[string]*Prepared // by container name
	slots    chan struct{}        // its capacity is the number of containers that are made at a time
	removing map[string]*removal  // by container name: see RemoveInBackground
	starting int                  // see AddStarting
	idle     chan struct{}        // nil while nothing is being started
	deciding bool                 // the loop has not yet carried out its decisions
	Busy     int                  // number of containers that are being made or removed
}

// New returns an empty Pool that shares the engine's mutex mu.
func New(mu *sync.Mutex, left *handoff.Store) *Pool {
	return &Pool{mu: mu, handoff: left, Prepared: map[string]*Prepared{}, slots: make(chan struct{}, runtime.NumCPU()), removing: map[string]*removal{}}
}

// Prepare makes the containers that are likely to be started next in s, each up to the moment before it
// executes its program, and discards all other prepared ones. They are not part of the status before they
// start. If the supervisor is killed, the next one removes them. first means that s is being made. The
// caller holds mu.
func (p *Pool) Prepare(plan *pod.Plan, s *sandbox.Sandbox, first bool, starts []lifecycle.Action) {
	if p.deciding { // the round is over
		p.deciding = false
		p.AddStarting(-1)
	}
	for name, early := range p.Prepared {
		c, _ := plan.Container(name)
		if early.sandbox != s || early.plan != c || !slices.ContainsFunc(starts, func(a lifecycle.Action) bool {
			return a.Container == name && a.Attempt == early.attempt
		}) {
			p.discard(name, early)
		}
	}
	for _, a := range starts {
		c, ok := plan.Container(a.Container)
		if p.Prepared[a.Container] != nil || !ok || s == nil || s.Shim == nil || !eligible(plan, c, first) {
			continue
		}
		early := &Prepared{sandbox: s, plan: c, attempt: a.Attempt, first: first, Made: make(chan struct{})}
		early.context, early.cancel = context.WithCancel(context.Background())
		p.Prepared[a.Container] = early
		p.Busy++
		go p.create(early, p.removing[a.Container])
	}
}

// Begin starts to use a container: it returns what was prepared for it, or nil. The caller holds mu, and
// calls AddStarting(-1) when the container has been started.
func (p *Pool) Begin(name string) *Prepared {
	p.AddStarting(1)
	early := p.Prepared[name]
	delete(p.Prepared, name)
	return early
}

// create makes a prepared container when its turn comes.
func (p *Pool) create(early *Prepared, before *removal) {
	defer p.done()
	defer close(early.Made)
	if !p.awaitSlot(early, before) {
		return
	}
	defer p.releaseSlot()
	in := handoff.Instance{Name: early.plan.Name, Attempt: early.attempt}
	p.handoff.Update(func(s *handoff.State) { s.Leftovers = append(s.Leftovers, in) })
	x := container.New(early.sandbox, early.plan, early.attempt)
	x.Prewarmed, x.FirstInSandbox = true, early.first
	if err := x.Create(early.context, early.sandbox); err != nil {
		p.handoff.ForgetInstance(in)
		return
	}
	early.Container = x
}

// awaitSlot waits until the sandbox's foundations exist, the instance before is removed, and a slot is
// free. It reports whether the container is still wanted.
func (p *Pool) awaitSlot(early *Prepared, before *removal) bool {
	select {
	case <-early.sandbox.FoundationsReady:
	case <-early.context.Done():
		return false
	}
	if before != nil {
		<-before.done
	}
	select {
	case p.slots <- struct{}{}:
	case <-early.context.Done():
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if early.started = early.context.Err() == nil; !early.started {
		<-p.slots
		return false
	}
	p.AddStarting(1)
	return true
}

// releaseSlot frees a slot.
func (p *Pool) releaseSlot() {
	<-p.slots
	p.mu.Lock()
	defer p.mu.Unlock()
	p.AddStarting(-1)
}

// discard removes a prepared container that is not needed. The caller holds mu.
func (p *Pool) discard(name string, early *Prepared) {
	delete(p.Prepared, name)
	early.cancel()
	p.RemoveInBackground(handoff.Instance{Name: name, Attempt: early.attempt}, func() {
		<-early.Made
		if early.Container != nil {
			early.Container.Discard(early.sandbox)
		}
	})
}

// Claim returns the prepared container for a start if it equals one that would be made now. Otherwise it
// discards it and returns nil.
func (p *Pool) Claim(early *Prepared, s *sandbox.Sandbox, c *pod.Container, attempt int) *container.Container {
	if early == nil || !p.tryClaim(early) {
		return nil
	}
	<-early.Made
	if early.Container != nil && early.sandbox == s && early.attempt == attempt && early.plan == c && early.Container.UpToDate(s) {
		early.cancel()
		return early.Container
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discard(c.Name, early)
	return nil
}

// tryClaim reports whether a container is being made or has been made. One that still waits for its turn is
// cancelled: its start is due now and makes it at once.
func (p *Pool) tryClaim(early *Prepared) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !early.started {
		early.cancel()
	}
	return early.started
}

func (p *Pool) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Busy--
}
