package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/probe"
)

// engine is the real kernel of the loop. Every action runs beside the loop and
// ends in an event.
type engine struct {
	plan   *pod.Plan // the loop's; another one is taken up by replan
	store  store.Pod
	events chan lifecycle.Event
	herald *herald

	asking sync.Once
	prober *probe.Prober // see asker

	applying sync.Mutex // held while another plan is applied

	mu       sync.Mutex
	next     *pod.Plan // applied, and not taken up yet; or nil
	sandbox  *sandbox
	cgroup   string          // where the sandbox's cgroup is, or was
	runs     map[string]*run // by container name, from the start's order to the end
	busy     int             // actions under way and ends not yet told
	warnings []string        // they outlive the sandbox
	warned   chan struct{}   // has room for one: there is a new warning

	// reaping is held while the end of a container is taken from the kernel, and by
	// who puts the supervisor to sleep: an end must not be lost in between.
	reaping sync.Mutex
}

// run is one order to start a container, until its end is told.
type run struct {
	container *container // nil while it is being made
	doomed    bool       // it was to be killed before it had a process
}

func newEngine(plan *pod.Plan, place store.Pod) *engine {
	return &engine{plan: plan, store: place, events: make(chan lifecycle.Event, 64), warned: make(chan struct{}, 1), runs: map[string]*run{}, herald: newHerald(plan)}
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
		e.work(1)
		go e.createSandbox()
	case lifecycle.StartContainer:
		e.mu.Lock()
		e.runs[a.Container] = &run{}
		e.busy++
		e.mu.Unlock()
		go e.runContainer(a)
	case lifecycle.StopContainer:
		e.signal(a.Container, false)
	case lifecycle.KillContainer:
		e.signal(a.Container, true)
	case lifecycle.RunProbe, lifecycle.RunHook:
		e.work(1)
		go e.ask(a)
	case lifecycle.MeasureStorage:
		e.work(1)
		go e.measureStorage()
	case lifecycle.RemoveSandbox:
		e.work(1)
		go e.removeSandbox()
	default:
		panic(fmt.Sprintf("runner: unknown action %q", a.Kind))
	}
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

func (e *engine) createSandbox() {
	defer e.work(-1)
	plan := e.current()
	s, err := createSandbox(plan, e.store, e.herald)
	if err != nil {
		e.emit(lifecycle.Event{Kind: lifecycle.SandboxLost, Message: err.Error()})
		return
	}
	e.mu.Lock()
	e.sandbox, e.warnings = s, s.warnings
	e.mu.Unlock()
	e.resizeLate(plan)
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxReady})
	e.guard(s)
}

func (e *engine) removeSandbox() {
	defer e.work(-1)
	e.mu.Lock()
	s := e.sandbox
	e.sandbox = nil
	e.mu.Unlock()
	var message string
	if s != nil {
		if err := s.remove(); err != nil {
			message = err.Error()
			fmt.Fprintln(os.Stderr, "remove sandbox:", err)
		}
	}
	e.emit(lifecycle.Event{Kind: lifecycle.SandboxGone, Message: message})
}

// annotate adds what only the engine knows.
func (e *engine) annotate(st pod.Status) pod.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st.Warnings = slices.Clone(e.warnings)
	if s := e.sandbox; s != nil && s.cgroup != nil {
		e.cgroup = s.cgroup.Path()
	}
	st.Cgroup = e.cgroup
	return st
}

// warn adds to what the user is to be told, once.
func (e *engine) warn(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text != "" && !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
		select {
		case e.warned <- struct{}{}:
		default: // nobody has heard of the last one yet
		}
	}
}

// runContainer runs one instance from its creation to its end.
func (e *engine) runContainer(a lifecycle.Action) {
	plan := e.current()
	c, ok := plan.Container(a.Container)
	if !ok {
		panic("runner: no container " + a.Container)
	}
	e.mu.Lock()
	s := e.sandbox
	e.mu.Unlock()
	x, err := startContainer(s, c, a.Attempt)
	if err != nil {
		e.forget(c.Name)
		e.emit(startFailed(a, err))
		e.work(-1)
		return
	}
	e.mu.Lock()
	e.runs[c.Name].container = x
	doomed := e.runs[c.Name].doomed
	e.mu.Unlock()
	if doomed {
		e.signal(c.Name, true)
	}
	e.resizeLate(plan)
	e.emit(lifecycle.Event{Kind: lifecycle.Started, Container: c.Name, Attempt: a.Attempt, ContainerID: containerID(plan, x)})
	e.work(-1)
	e.follow(s, x)
}

// follow waits for the end of a running container, frees what it held and tells.
func (e *engine) follow(s *sandbox, x *container) {
	x.log.tellLoss(func() { e.warn(x.log.warning(x.plan.Name)) })
	untilEnded(x.pid)
	e.reaping.Lock()
	e.work(1)
	defer e.work(-1)
	end := x.wait()
	e.reaping.Unlock()
	at := readClocks()
	e.forget(x.plan.Name)
	if s.cgroup != nil {
		end.oom, end.oomLimit = outOfMemory(s.cgroup, x.plan.Name)
	}
	x.finish(s)
	e.warn(x.log.warning(x.plan.Name))
	if end.message == "" {
		end.message = x.terminationMessage(e.store.LogDir(x.plan.Name), end.code)
	}
	if err := x.cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "remove container %s: %v\n", x.plan.Name, err)
	}
	e.emit(lifecycle.Event{
		At: at, Kind: lifecycle.Exited, Container: x.plan.Name, Attempt: x.attempt,
		ExitCode: end.code, Signal: end.signal, OOMKilled: end.oom, OOMLimit: end.oomLimit, Message: end.message,
	})
}

func containerID(plan *pod.Plan, x *container) string {
	return plan.UID + "-" + x.id()
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
}
