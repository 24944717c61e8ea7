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

// Prepared is a container that is being made before its time, or has been.
type Prepared struct {
	sandbox   *sandbox.Sandbox
	plan      *pod.Container
	attempt   int
	first     bool // there is no other container in the sandbox that runs
	context   context.Context
	cancel    context.CancelFunc
	started   bool                 // its turn has come: who needs it waits until it is made. By the engine's mu
	Made      chan struct{}        // closed when it is known what has become of it
	Container *container.Container // nil: it was not made, or could not be; its own start tells why
}

// Pool makes containers before their time, and removes what is left of those that have ended, beside
// the loop.
type Pool struct {
	mu      *sync.Mutex // the engine's
	handoff *handoff.Store

	Prepared map[string]*Prepared // by container name
	slots    chan struct{}        // has room for as many as are prepared at a time
	removing map[string]*removal  // by container name: see RemoveInBackground
	starting int                  // see stir
	idle     chan struct{}        // nil while nothing stirs
	deciding bool                 // the loop has yet to do what it has decided
	Busy     int                  // containers that are being made or removed
}

// New returns an empty Pool that shares the engine's mutex mu.
func New(mu *sync.Mutex, left *handoff.Store) *Pool {
	return &Pool{mu: mu, handoff: left, Prepared: map[string]*Prepared{}, slots: make(chan struct{}, runtime.NumCPU()), removing: map[string]*removal{}}
}

// Prepare has those containers made, and no others, that are likely to be started next in s: each
// up to the moment at which it executes its program. Until then nobody is told of them. A
// supervisor that is killed leaves them to the next one, which removes them. first: s is being
// made. The caller holds mu.
func (p *Pool) Prepare(plan *pod.Plan, s *sandbox.Sandbox, first bool, starts []lifecycle.Action) {
	if p.deciding { // it was done
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
		if p.Prepared[a.Container] != nil || !ok || s == nil || s.Trampoline == nil || !eligible(plan, c, first) {
			continue
		}
		early := &Prepared{sandbox: s, plan: c, attempt: a.Attempt, first: first, Made: make(chan struct{})}
		early.context, early.cancel = context.WithCancel(context.Background())
		p.Prepared[a.Container] = early
		p.Busy++
		go p.create(early, p.removing[a.Container])
	}
}

// Begin is for a container that is to be started: it returns what was prepared for it, or nil. The
// caller holds mu, and calls stir(-1) once it was started.
func (p *Pool) Begin(name string) *Prepared {
	p.AddStarting(1)
	early := p.Prepared[name]
	delete(p.Prepared, name)
	return early
}

// create makes a container that is to wait, when its turn comes.
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

// awaitSlot waits until a container can be made, nothing is left of the one before, and a
// processor is to be had. It says whether it is still to be made.
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

// releaseSlot lets another container be made.
func (p *Pool) releaseSlot() {
	<-p.slots
	p.mu.Lock()
	defer p.mu.Unlock()
	p.AddStarting(-1)
}

// discard removes what was prepared and is not needed. The caller holds mu.
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

// Claim gives what was prepared for a start, if it is just what would be made now.
// Anything else is discarded.
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

// tryClaim says whether a container is being made, or has been. One that still waits for its turn
// is kept from it: it is needed now, whatever else is being made.
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
