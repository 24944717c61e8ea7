package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/probe"
	"github.com/podrun/podrun/volumes"
)

// engine is the real kernel of the loop. Every action runs beside the loop and
// ends in an event.
type engine struct {
	plan   *pod.Plan // the loop's; another one is taken up by replan
	store  store.Pod
	estate *estate
	events chan lifecycle.Event
	shared
	herald    *herald
	published *publisher

	trampoline *trampoline.Program // nil: there is none

	remembered int // how many containers are on disk as having done their work: see remember

	asking  sync.Once
	prober  *probe.Prober // see asker
	sockets sockets       // its
	probes  gate

	applying   sync.Mutex // held while another plan is applied
	refreshing sync.Mutex // held while the files of volumes are written anew

	mu       sync.Mutex
	next     *pod.Plan // applied, and not taken up yet; or nil
	sandbox  *sandbox
	rising   *sandbox        // that is being made
	cgroup   string          // where the sandbox's cgroup is, or was
	podIPs   []string        // the sandbox's addresses, or what they were
	hostIPs  []string        // the machine's, likewise
	runs     map[string]*run // by container name, from the start's order to the end
	ended    []*container    // their end was told, and may not have been recorded
	pool     *pool           // its lock is mu
	busy     int             // actions under way and ends not yet told
	warnings []string        // they outlive the sandbox
	asked    bool            // by the keeper to stop, and has not answered
	warned   chan struct{}   // has room for one: there is a new warning
}

// run is one order to start a container, until its end is told.
type run struct {
	container *container // nil while it is being made
	doomed    bool       // it was to be killed before it had a process
}

func newEngine(plan *pod.Plan, place store.Pod, left *estate, ns shared) *engine {
	e := &engine{
		plan: plan, store: place, estate: left, shared: ns, sockets: sockets{files: ns.netFiles()}, herald: newHerald(plan, left), published: newPublisher(left.keeper),
		trampoline: carriedTrampoline(),
		events:     make(chan lifecycle.Event, 64), warned: make(chan struct{}, 1), runs: map[string]*run{}, probes: newGate(),
	}
	e.pool = newPool(&e.mu, left)
	return e
}

// newSandbox is a sandbox that is to be made, or was.
func (e *engine) newSandbox(plan *pod.Plan, attempt int) *sandbox {
	return newSandbox(sandboxOptions{
		plan: plan, store: e.store, namespaces: e.shared, estate: e.estate, ports: e.published, trampoline: e.trampoline,
		show: e.herald.show, warn: e.warn,
	}, attempt)
}

// currentSandbox is the pod's, or nil.
func (e *engine) currentSandbox() *sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sandbox
}

// current is the loop's Plan.
func (e *engine) current() *pod.Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.plan
}

// Events carries what came of the actions, and stop requests.
func (e *engine) Events() <-chan lifecycle.Event { return e.events }

// Do starts an action.
func (e *engine) Do(a lifecycle.Action) {
	switch a.Kind {
	case lifecycle.CreateSandbox:
		go e.createSandbox(e.raise(a.Attempt))
	case lifecycle.StartContainer:
		e.mu.Lock()
		e.runs[a.Container] = &run{}
		e.busy++
		early := e.pool.start(a.Container)
		e.mu.Unlock()
		go e.runContainer(a, early)
	case lifecycle.StopContainer:
		e.signal(a.Container, false)
	case lifecycle.KillContainer:
		e.signal(a.Container, true)
	case lifecycle.RunProbe, lifecycle.RunHook:
		e.work(1)
		go e.ask(a)
	case lifecycle.FreezeSandbox:
		e.freeze(true)
	case lifecycle.ThawSandbox:
		e.freeze(false)
	case lifecycle.MeasureStorage:
		e.work(1)
		go e.measureStorage()
	case lifecycle.RemoveSandbox:
		e.work(1)
		go e.removeSandbox(a.Attempt)
	default:
		panic(fmt.Sprintf("runner: unknown action %q", a.Kind))
	}
}

// Record leaves to a later supervisor what is known, before what was decided is carried
// out. Then nothing that it tells is needed any more.
func (e *engine) Record(o *lifecycle.Observed) {
	if err := e.estate.observe(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	e.remember(o)
	e.warn(e.estate.warning())
	e.mu.Lock()
	ended := e.ended
	e.ended = nil
	if len(ended) > 0 {
		e.pool.act()
	}
	for _, x := range ended {
		if live(o, x.plan.Name, x.attempt) {
			e.ended = append(e.ended, x)
		} else {
			e.estate.ends.forget(x.process)
			e.pool.removeBeside(instance{x.plan.Name, x.attempt}, x.remove)
		}
	}
	answer := e.asked && o.Deleting
	e.asked = e.asked && !answer
	e.mu.Unlock()
	if answer {
		e.estate.keeper.Stopping()
	}
}

// listen obeys the keeper: it tells of ends and passes stop requests on.
func (e *engine) listen() {
	go e.estate.keeper.Listen(e.estate.ends.told, func() {
		e.mu.Lock()
		e.asked = true
		e.mu.Unlock()
		e.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	})
}

func (e *engine) emit(ev lifecycle.Event) {
	if ev.At == (lifecycle.Now{}) {
		ev.At = readClocks()
	}
	e.events <- ev
}

// work counts what is under way; the engine is quiet when nothing is.
func (e *engine) work(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy += n
}

// annotate adds what only the engine knows.
func (e *engine) annotate(st pod.Status) pod.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st.Warnings, st.BootID = slices.Clone(e.warnings), e.estate.boot()
	if s := e.sandbox; s != nil && s.cgroup != nil {
		e.cgroup = s.cgroup.Path()
	}
	st.Cgroup = e.cgroup
	st.ShallowReadOnly = !volumes.RecursiveReadOnly()
	if s := e.sandbox; s != nil {
		e.podIPs, e.hostIPs = texts(s.addresses()), hostIPs()
		st.Network, st.NetworkWhy = s.mode(), s.stays
	}
	st.PodIPs, st.HostIPs = e.podIPs, e.hostIPs // as with the kubelet they outlive the sandbox
	return st
}

// maxWarnings bounds what the user is told: each attempt of a container may have one of
// its own.
const maxWarnings = 50

// warn adds to what the user is to be told, once; of too many the latest stay.
func (e *engine) warn(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text != "" && !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
		e.warnings = e.warnings[max(0, len(e.warnings)-maxWarnings):]
		warnings := slices.Clone(e.warnings)
		e.estate.record(func(left *state) { left.Warnings = warnings })
		select {
		case e.warned <- struct{}{}:
		default: // nobody has heard of the last one yet
		}
	}
}

// startFailed tells the loop in the kubelet's words why a container never ran.
func startFailed(a lifecycle.Action, err error) lifecycle.Event {
	ev := lifecycle.Event{
		Kind: lifecycle.StartFailed, Container: a.Container, Attempt: a.Attempt,
		Reason: lifecycle.ReasonCreateError, ExitCode: 128, Message: err.Error(),
	}
	var bad configError
	var start startError
	switch {
	case errors.As(err, &bad):
		ev.Reason = lifecycle.ReasonCreateConfigError
	case errors.As(err, &start):
		ev.Reason, ev.ExitCode = "StartError", start.code
	}
	return ev
}

// forget ends a run: from now on nothing reaches its container.
func (e *engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, name)
}

// signal sends a container its stop signal, or SIGKILL.
func (e *engine) signal(name string, kill bool) {
	e.mu.Lock()
	var x *container
	if r := e.runs[name]; r != nil {
		x = r.container
		r.doomed = r.doomed || kill
	}
	e.mu.Unlock()
	if x == nil {
		return // it is being made, or has just ended; its event is on the way
	}
	sig := unix.SIGKILL
	if !kill {
		sig = x.stopSignal()
	}
	if err := x.signal(sig); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !kill {
		e.estate.rerun(x.process, func(r *savedRun) { r.Stopped = true })
	}
}
