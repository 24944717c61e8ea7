package lifecycle

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/pod"
)

// fake simulates a pod: its real state, as opposed to the state that the lifecycle has observed.
type fake struct {
	*rapid.T
	plan    *pod.Plan
	seen    Observed
	journal []Event
	boot    time.Duration

	sandbox SandboxState
	number  int  // of earlier sandboxes
	broken  bool // no container can start in it
	procs   map[string]*proc
	inbox   []Event // events that have happened and are not applied yet

	underWay []probeOrHook // probes and hooks under way

	stopRequested bool // a stop was requested
	atOnce        bool // with a grace of 0
	bounds        []time.Duration
	last          Decision

	phase       pod.Phase
	initialized bool
}

// proc is the real state of one container.
type proc struct {
	state       RunState
	attempt     int
	issued      time.Duration // of the latest start
	seenEnd     time.Duration // when the latest end was seen
	term        *time.Duration
	everStarted bool
	code        int
	oom         bool
	free        int // starts without a back-off

	hooked                       []HookKind // hooks that ran in this run
	postStarted, startupDone     bool       // in this run
	everPostStarted, everStartup bool
}

func (p *proc) live() bool { return p.state == RunStarting || p.state == RunRunning }

func (f *fake) proc(name string) *proc {
	p, ok := f.procs[name]
	if !ok {
		p = &proc{attempt: -1}
		f.procs[name] = p
	}
	return p
}

func (f *fake) draw(label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(f.T, label)
}

func (f *fake) now() Now { return Now{Boot: bootBegin + f.boot, Wall: wallBegin.Add(f.boot)} }

func (f *fake) apply(e Event) {
	e.At = f.now()
	f.journal = append(f.journal, e)
	f.seen.Apply(f.plan, e)
}

// happen queues an event, which is applied some time later.
func (f *fake) happen(e Event) { f.inbox = append(f.inbox, e) }

// names returns the containers in a state, in the plan's order.
func (f *fake) names(state RunState) (out []string) {
	for _, list := range [][]pod.Container{f.plan.InitContainers, f.plan.Containers} {
		for _, c := range list {
			if f.proc(c.Name).state == state {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

func (f *fake) anyLive(list []pod.Container) bool {
	for _, c := range list {
		if f.proc(c.Name).live() {
			return true
		}
	}
	return false
}

// randomStep performs one random step.
func (f *fake) randomStep() {
	switch f.draw("step", 0, 14) {
	case 0, 1, 2:
		f.see()
	case 3:
		f.boot += time.Duration(f.draw("milliseconds", 1, 15000)) * time.Millisecond
	case 4:
		f.sleep()
	case 5, 6:
		f.startOne(f.draw("fails?", 0, 4) == 0)
	case 7, 8:
		f.exitOne()
	case 9:
		f.sandboxAnswers()
	case 10:
		if n := len(f.journal); n > 0 {
			f.see()
			if e := f.journal[f.draw("again", 0, n-1)]; mayRepeat(e.Kind) {
				f.apply(e)
			}
		}
	case 11, 12, 13:
		f.answerOne()
	case 14:
		switch f.draw("rare", 0, 12) {
		case 3, 4:
			f.die()
		case 5:
			f.breakSandbox()
		case 2:
			f.alter()
		case 0:
			f.askStop()
		case 1:
			f.boot += time.Duration(f.draw("minutes", 5, 20)) * time.Minute
		}
	}
}

// mayRepeat reports whether an event may be delivered twice. A probe's outcome may not: it has no
// number, and the supervisor that started the probe dies with all its probes (Adopted).
func mayRepeat(kind EventKind) bool {
	return !slices.Contains([]EventKind{Issued, StopRequested, SandboxFailed, SandboxReady, SandboxKilled, VolumesFailed, Recovered, Probed}, kind)
}

// see delivers one event, not always the oldest.
func (f *fake) see() {
	if len(f.inbox) == 0 {
		return
	}
	i := f.draw("event", 0, len(f.inbox)-1)
	e := f.inbox[i]
	f.inbox = append(f.inbox[:i:i], f.inbox[i+1:]...)
	f.apply(e)
	if e.Kind == Exited || e.Kind == StartFailed {
		f.proc(e.Container).seenEnd = f.boot
		f.noteRestarted()
	}
	if e.Kind == SandboxRemoved {
		f.another()
	}
	if e.Kind == SandboxReady && f.sandbox != SandboxUp {
		f.Fatalf("the fake said ready of a sandbox that is %q", f.sandbox)
	}
}

// sleep waits as the supervisor does.
func (f *fake) sleep() {
	if f.last.Wake != 0 {
		f.boot = max(f.boot, f.last.Wake-bootBegin)
	}
}

func (f *fake) startOne(fails bool) {
	names := f.names(RunStarting)
	if len(names) == 0 {
		return
	}
	name := names[f.draw("start", 0, len(names)-1)]
	p := f.proc(name)
	if fails {
		p.state, p.code = RunEnded, startErrorCode
		f.happen(Event{Kind: StartFailed, Container: name, Attempt: p.attempt})
		return
	}
	p.state, p.everStarted = RunRunning, true
	f.happen(Event{Kind: Started, Container: name, Attempt: p.attempt, ContainerID: name})
}

func (f *fake) exitOne() {
	if names := f.names(RunRunning); len(names) > 0 {
		f.exit(names[f.draw("exit", 0, len(names)-1)], f.draw("code", 0, 1), f.draw("oom?", 0, 9) == 0)
	}
}

func (f *fake) exit(name string, code int, oom bool) {
	p := f.proc(name)
	p.state, p.code, p.oom = RunEnded, code, oom
	f.happen(Event{Kind: Exited, Container: name, Attempt: p.attempt, ExitCode: code, OOMKilled: oom})
}

func (f *fake) sandboxAnswers() {
	switch {
	case f.sandbox == SandboxCreating && f.draw("sandbox fails?", 0, 9) == 0:
		f.sandbox = SandboxDown
		if f.number > 0 {
			f.sandbox = SandboxNone // it may be tried again
		}
		f.happen(Event{Kind: SandboxFailed, Attempt: f.number, Message: "no luck"})
	case f.sandbox == SandboxCreating && f.draw("volumes fail?", 0, 9) == 0:
		f.sandbox = SandboxNone // it is tried again
		f.happen(Event{Kind: VolumesFailed, Attempt: f.number, Message: "no luck"})
	case f.sandbox == SandboxCreating:
		f.sandbox = SandboxUp
		f.happen(Event{Kind: SandboxReady, Attempt: f.number})
	case f.sandbox == SandboxRemoving:
		f.sandbox = SandboxDown
		f.happen(Event{Kind: SandboxRemoved, Attempt: f.number})
	}
}

// askStop requests a stop with or without a grace of its own.
func (f *fake) askStop() {
	g := int64(f.draw("grace", -1, 60))
	e := Event{Kind: StopRequested, GraceSeconds: &g}
	if f.draw("own grace?", 0, 1) == 0 {
		g, e.GraceSeconds = f.plan.GraceSeconds, nil
	}
	f.stopRequested = true
	f.atOnce = f.atOnce || e.GraceSeconds != nil && g == 0
	f.bounds = append(f.bounds, f.boot+max(time.Duration(g), -time.Duration(g))*time.Second)
	f.apply(e)
}

// stopAndFinish requests a stop. From then on everything that has begun ends, but a process may
// ignore its stop signal.
func (f *fake) stopAndFinish() {
	f.askStop()
	f.decide()
	for round := 0; !f.last.Done; round++ {
		if round > 200 {
			f.Fatalf("a stopped pod is not done: %+v", f.seen)
		}
		switch {
		case len(f.inbox) > 0:
			f.see()
		case len(f.names(RunStarting)) > 0:
			f.startOne(f.draw("fails?", 0, 4) == 0)
		case f.sandbox == SandboxCreating, f.sandbox == SandboxRemoving:
			f.sandboxAnswers()
		case len(f.underWay) > 0 && f.draw("answers?", 0, 1) == 0:
			f.answerOne()
		case f.last.Wake != 0 && f.draw("obeys?", 0, 1) == 0:
			f.sleep()
		default:
			f.exitOne()
		}
		f.decide()
	}
}
