package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/runner/notify"
	"github.com/podrun/podrun/runner/prepared"
	"github.com/podrun/podrun/runner/probe"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// engine is the executor that acts on the kernel. An action runs concurrently with the loop and ends in an
// event. Signals are sent at once; their event is the container's exit. Freezing prevents new processes at
// once; the rest of it runs concurrently.
type engine struct {
	plan    *pod.Plan // the loop's; replan replaces it
	pod     store.Pod
	handoff *handoff.Record
	events  chan lifecycle.Event
	sandbox.Namespaces
	notifier  *notify.Notifier
	hostPorts *network.HostPorts

	shim *execshim.Program // nil: not available

	completed int // number of containers recorded on disk as completed: see saveCompleted

	proberOnce sync.Once
	prober     *probe.Prober    // see getProber
	sockets    nsthread.Sockets // the prober's
	probes     probe.Gate

	counting sync.Mutex // held while counters is used
	counters *os.File   // see probeCounters; nil: not open

	applying   sync.Mutex // held while another Plan is applied
	refreshing sync.Mutex // held while the files of volumes are rewritten

	mu            sync.Mutex
	next          *pod.Plan // applied, but not taken over by the loop yet; or nil
	sandbox       *sandbox.Sandbox
	creating      *sandbox.Sandbox       // the sandbox that is being made
	cgroup        string                 // the path of the sandbox's cgroup, kept after the sandbox is gone
	podIPs        []string               // the sandbox's addresses, kept after the sandbox is gone
	hostIPs       []string               // the machine's addresses, likewise
	instances     map[string]*instance   // by container name, from the Start action to the exit
	exited        []*container.Container // whose exit was emitted, but may not be recorded yet
	prepared      *prepared.Pool         // guarded by mu
	busy          int                    // number of actions under way and exits not emitted yet
	warnings      []string               // kept after the sandbox is gone
	deleting      bool                   // the pod is being deleted
	left          chan struct{}          // closed when the pod that is being deleted has left its Services; nil before
	stopRequested bool                   // pod init has requested a stop and has no answer yet
	warned        chan struct{}          // capacity 1: there is a new warning
}

// instance is one instance of a container, from its Start action until its exit is emitted.
type instance struct {
	container *container.Container // nil while it is being made
	killed    bool                 // it was killed before it had a process
}

func newEngine(plan *pod.Plan, p store.Pod, handoff *handoff.Record, ns sandbox.Namespaces) *engine {
	e := &engine{
		plan: plan, pod: p, handoff: handoff, Namespaces: ns, sockets: nsthread.Sockets{Files: ns.NetFiles()}, notifier: notify.New(plan, handoff), hostPorts: network.NewHostPorts(handoff.PodInit),
		shim:   container.EmbeddedShim(),
		events: make(chan lifecycle.Event, 64), warned: make(chan struct{}, 1), instances: map[string]*instance{}, probes: probe.NewGate(),
	}
	e.prepared = prepared.New(&e.mu, handoff)
	return e
}

// newSandbox returns the Go value of a sandbox that is to be created, or that an earlier supervisor has
// created.
func (e *engine) newSandbox(plan *pod.Plan, attempt int) *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{
		Plan: plan, Pod: e.pod, Namespaces: e.Namespaces, Handoff: e.handoff, Ports: e.hostPorts, Shim: e.shim,
		OnLines: e.notifier.CopyLines, Warn: e.warn,
	}, attempt)
}

// currentSandbox returns the pod's sandbox, or nil.
func (e *engine) currentSandbox() *sandbox.Sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sandbox
}

// currentPlan returns the loop's Plan.
func (e *engine) currentPlan() *pod.Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.plan
}

// Events returns the channel of the actions' results and of stop requests.
func (e *engine) Events() <-chan lifecycle.Event { return e.events }

// Do starts an action.
func (e *engine) Do(a lifecycle.Action) {
	switch a.Kind {
	case lifecycle.CreateSandbox:
		go e.createSandbox(e.beginSandbox(a.Attempt))
	case lifecycle.StartContainer:
		e.mu.Lock()
		e.instances[a.Container] = &instance{}
		e.busy++
		prepared := e.prepared.Take(a.Container)
		e.mu.Unlock()
		go e.startContainer(a, prepared)
	case lifecycle.StopContainer:
		e.stopContainer(a.Container)
	case lifecycle.KillContainer:
		e.signalContainer(a.Container, true)
	case lifecycle.RunProbe, lifecycle.RunHook:
		e.addBusy(1)
		go e.probeOrHook(a)
	case lifecycle.FreezeSandbox:
		e.freeze(true)
	case lifecycle.ThawSandbox:
		e.freeze(false)
	case lifecycle.MeasureStorage:
		e.addBusy(1)
		go e.measureStorage()
	case lifecycle.RemoveSandbox:
		e.addBusy(1)
		go e.removeSandbox(a.Attempt)
	default:
		panic(fmt.Sprintf("runner: unknown action %q", a.Kind))
	}
}

// Save saves for a later supervisor what is observed, before the decided actions run. After that it removes
// the instances whose exit is recorded.
func (e *engine) Save(o *lifecycle.Observed) {
	if err := e.handoff.SaveObserved(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	e.saveCompleted(o)
	e.warn(e.handoff.Warning())
	e.mu.Lock()
	ended := e.exited
	e.exited, e.deleting = nil, o.Deleting
	if len(ended) > 0 {
		e.prepared.MarkDeciding()
	}
	for _, x := range ended {
		if handoff.IsLive(o, x.Plan.Name, x.Attempt) {
			e.exited = append(e.exited, x)
		} else {
			e.handoff.Exits.Forget(x.Process)
			e.prepared.RemoveInBackground(handoff.Instance{Name: x.Plan.Name, Attempt: x.Attempt}, x.Remove)
		}
	}
	stopIsRecorded := e.stopRequested && o.Deleting
	e.stopRequested = e.stopRequested && !stopIsRecorded
	e.mu.Unlock()
	if stopIsRecorded {
		e.handoff.PodInit.StopRecorded()
	}
}

// listenPodInit handles pod init's messages: process exits and stop requests.
func (e *engine) listenPodInit() {
	go e.handoff.PodInit.Listen(e.handoff.Exits.Receive, func() {
		e.mu.Lock()
		e.stopRequested = true
		e.mu.Unlock()
		e.emit(lifecycle.Event{Kind: lifecycle.StopRequested})
	})
}

func (e *engine) emit(ev lifecycle.Event) {
	if ev.At == (lifecycle.Now{}) {
		ev.At = clock.Now()
	}
	e.events <- ev
}

// addBusy counts the actions under way; the engine is idle when there are none.
func (e *engine) addBusy(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy += n
}

// completeStatus adds the fields that only the engine can fill.
func (e *engine) completeStatus(st pod.Status) pod.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st.Warnings, st.BootID = slices.Clone(e.warnings), e.handoff.BootID()
	if s := e.sandbox; s != nil && s.Cgroup != nil {
		e.cgroup = s.Cgroup.Path()
	}
	st.Cgroup = e.cgroup
	st.ShallowReadOnly = !volumes.RecursiveReadOnly()
	if s := e.sandbox; s != nil {
		e.podIPs, e.hostIPs = network.AddrStrings(s.Addresses()), s.HostIPs()
		st.Network, st.NetworkWhy = s.Mode(), s.MasqueradeError
	}
	st.PodIPs, st.HostIPs = e.podIPs, e.hostIPs // as in the kubelet they stay after the sandbox is gone
	return st
}

// maxWarnings limits the warnings in the status: each instance of a container may add one.
const maxWarnings = 50

// warn adds a warning to the status, unless it is there already. Beyond maxWarnings the oldest are dropped.
func (e *engine) warn(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text != "" && !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
		e.warnings = e.warnings[max(0, len(e.warnings)-maxWarnings):]
		warnings := slices.Clone(e.warnings)
		e.handoff.Update(func(s *handoff.State) { s.Warnings = warnings })
		select {
		case e.warned <- struct{}{}:
		default: // the previous notification has not been received yet
		}
	}
}

// startFailedEvent returns the event, with the kubelet's reason, for a container that could not be started.
func startFailedEvent(a lifecycle.Action, err error) lifecycle.Event {
	ev := lifecycle.Event{
		Kind: lifecycle.StartFailed, Container: a.Container, Attempt: a.Attempt,
		Reason: lifecycle.ReasonCreateError, ExitCode: 128, Message: err.Error(),
	}
	var bad sandbox.ConfigError
	var start container.StartError
	switch {
	case errors.As(err, &bad):
		ev.Reason = lifecycle.ReasonCreateConfigError
	case errors.As(err, &start):
		ev.Reason, ev.ExitCode = "StartError", start.Code
	}
	return ev
}

// dropInstance removes an instance: signals no longer reach its container.
func (e *engine) dropInstance(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.instances, name)
}

// leaveTime is how long a container's stop signal waits at most for the pod to leave its Services.
const leaveTime = 5 * time.Second

// stopContainer sends a container its stop signal. A pod that is being deleted leaves its Services first: a container
// may close its port at once, while others still connect to it.
func (e *engine) stopContainer(name string) {
	left := e.leaveServices()
	if left == nil {
		e.signalContainer(name, false)
		return
	}
	e.addBusy(1)
	go func() {
		defer e.addBusy(-1)
		select {
		case <-left:
		case <-time.After(leaveTime):
		}
		e.signalContainer(name, false)
	}()
}

// leaveServices takes a pod that is being deleted out of its Services. It returns a channel that is closed then; nil if
// there is nothing to leave.
func (e *engine) leaveServices() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, plan := e.sandbox, e.plan
	if !e.deleting || s == nil || s.Slot == 0 || !e.pod.HadServices() {
		return nil
	}
	if e.left == nil {
		left := make(chan struct{})
		e.left = left
		go func() {
			defer close(left)
			s.SetEndpoint(plan, &pod.Status{Deleting: true})
			if err := s.PublishEndpoint(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	return e.left
}

// signalContainer sends a container its stop signal, or SIGKILL.
func (e *engine) signalContainer(name string, kill bool) {
	e.mu.Lock()
	var x *container.Container
	if r := e.instances[name]; r != nil {
		x = r.container
		r.killed = r.killed || kill
	}
	e.mu.Unlock()
	if x == nil {
		return // it is being made, or has just exited; its event follows
	}
	sig := unix.SIGKILL
	if !kill {
		sig = x.StopSignal()
	}
	if err := x.Signal(sig); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !kill {
		e.handoff.UpdateRunning(x.Process, func(r *handoff.RunningInstance) { r.Stopped = true })
	}
}
