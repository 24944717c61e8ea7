package prepared

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// Container is a container that is made before it is due.
type Container struct {
	sandbox        *sandbox.Sandbox
	plan           *pod.Container
	attempt        int
	firstInSandbox bool // no other container runs before it in its sandbox, which is still being made
	context        context.Context
	cancel         context.CancelFunc
	creating       bool                 // its creation has begun: its start waits for the result. Guarded by the engine's mu
	Made           chan struct{}        // closed when the result is known
	Instance       *container.Container // nil: it was not made or failed; the regular start reports the error
}

// Pool makes containers before they are due, and removes ended ones, concurrently with the loop.
type Pool struct {
	mu      *sync.Mutex // the engine's
	handoff *handoff.Record

	Containers map[string]*Container // by container name
	slots      chan struct{}         // its capacity is the number of containers that are made at a time
	removing   map[string]*removal   // by container name: see RemoveInBackground
	starting   int                   // see AddStarting
	allStarted chan struct{}         // closed when nothing is being started any more; nil when nothing is
	deciding   bool                  // the loop has not yet carried out its decisions
	Busy       int                   // number of containers that are being made or removed
}

// New returns an empty Pool that shares the engine's mutex mu.
func New(mu *sync.Mutex, handoff *handoff.Record) *Pool {
	return &Pool{mu: mu, handoff: handoff, Containers: map[string]*Container{}, slots: make(chan struct{}, runtime.NumCPU()), removing: map[string]*removal{}}
}

// Prepare makes the containers that are likely to be started next in s, each up to the moment before it
// executes its program, and discards all other prepared containers. Prepared containers are not part of the
// status. If the supervisor is killed, the next one removes them. sandboxCreating means that s is still being
// made. The caller holds mu.
func (p *Pool) Prepare(plan *pod.Plan, s *sandbox.Sandbox, sandboxCreating bool, next lifecycle.Preparation) {
	if p.deciding { // the round is over
		p.deciding = false
		p.AddStarting(-1)
	}
	for name, prepared := range p.Containers {
		c, _ := plan.Container(name)
		if prepared.sandbox != s || prepared.plan != c || !slices.ContainsFunc(next.Starts, func(a lifecycle.Action) bool {
			return a.Container == name && a.Attempt == prepared.attempt
		}) {
			p.discard(name, prepared)
		}
	}
	for i, a := range next.Starts {
		firstInSandbox := sandboxCreating && i < next.First
		c, ok := plan.Container(a.Container)
		if p.Containers[a.Container] != nil || !ok || s == nil || s.Shim == nil || !eligible(plan, c, firstInSandbox, sandboxCreating) {
			continue
		}
		prepared := &Container{sandbox: s, plan: c, attempt: a.Attempt, firstInSandbox: firstInSandbox, Made: make(chan struct{})}
		prepared.context, prepared.cancel = context.WithCancel(context.Background())
		p.Containers[a.Container] = prepared
		p.Busy++
		go p.create(prepared, p.removing[a.Container])
	}
}

// Take removes the prepared container of a name from the pool for its start, and returns it, or nil. Claim then
// checks it. The caller holds mu, and calls AddStarting(-1) when the container has been started.
func (p *Pool) Take(name string) *Container {
	p.AddStarting(1)
	prepared := p.Containers[name]
	delete(p.Containers, name)
	return prepared
}

// create makes a prepared container when its turn comes.
func (p *Pool) create(prepared *Container, before *removal) {
	defer p.done()
	defer close(prepared.Made)
	if !p.awaitSlot(prepared, before) {
		return
	}
	defer p.releaseSlot()
	in := handoff.Instance{Name: prepared.plan.Name, Attempt: prepared.attempt}
	p.handoff.Update(func(s *handoff.State) { s.Leftovers = append(s.Leftovers, in) })
	x := container.New(prepared.sandbox, prepared.plan, prepared.attempt)
	x.Prepared, x.FirstInSandbox = true, prepared.firstInSandbox
	if err := x.Create(prepared.context, prepared.sandbox); err != nil {
		p.handoff.ForgetInstance(in)
		return
	}
	prepared.Instance = x
}

// awaitSlot waits until the sandbox's foundations exist, the previous instance is removed, and a slot is free.
// It reports whether the container is still wanted.
func (p *Pool) awaitSlot(prepared *Container, before *removal) bool {
	select {
	case <-prepared.sandbox.FoundationsDone:
	case <-prepared.context.Done():
		return false
	}
	if before != nil {
		<-before.done
	}
	select {
	case p.slots <- struct{}{}:
	case <-prepared.context.Done():
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if prepared.creating = prepared.context.Err() == nil; !prepared.creating {
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
func (p *Pool) discard(name string, prepared *Container) {
	delete(p.Containers, name)
	prepared.cancel()
	p.RemoveInBackground(handoff.Instance{Name: name, Attempt: prepared.attempt}, func() {
		<-prepared.Made
		if prepared.Instance != nil {
			prepared.Instance.Discard(prepared.sandbox)
		}
	})
}

// Claim returns the prepared container for a start if it equals a container that would be made now. Otherwise
// it discards the prepared container and returns nil.
func (p *Pool) Claim(prepared *Container, s *sandbox.Sandbox, c *pod.Container, attempt int) *container.Container {
	if prepared == nil || !p.tryClaim(prepared) {
		return nil
	}
	<-prepared.Made
	if prepared.Instance != nil && prepared.sandbox == s && prepared.attempt == attempt && prepared.plan == c && prepared.Instance.UpToDate(s) {
		prepared.cancel()
		return prepared.Instance
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discard(c.Name, prepared)
	return nil
}

// tryClaim reports whether a container is being made or has been made. A container that still waits for its turn
// is cancelled: its start is due, and makes it at once.
func (p *Pool) tryClaim(prepared *Container) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !prepared.creating {
		prepared.cancel()
	}
	return prepared.creating
}

func (p *Pool) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Busy--
}
