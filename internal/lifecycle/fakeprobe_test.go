package lifecycle

import (
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// probeOrHook is a probe or a hook under way in the fake.
type probeOrHook struct {
	container string
	attempt   int
	probe     ProbeKind
	hook      HookKind
}

// drawProbesAndHooks gives a container of a random pod probes and hooks.
func drawProbesAndHooks(n func(label string, low, high int) int, c *pod.Container) {
	probe := func(label string) *pod.Probe {
		if n(label, 0, 3) > 0 {
			return nil
		}
		p := &pod.Probe{InitialDelaySeconds: int64(n("delay", 0, 5)), PeriodSeconds: int64(n("period", 1, 20)), TimeoutSeconds: 1,
			SuccessThreshold: 1, FailureThreshold: n("failures", 1, 3)}
		if n("probe grace?", 0, 1) == 1 {
			p.GraceSeconds = new(int64(n("probe grace", 1, 20)))
		}
		return p
	}
	hook := func(label string) *pod.Handler {
		if n(label, 0, 2) > 0 {
			return nil
		}
		return &pod.Handler{Exec: []string{"true"}}
	}
	c.Startup, c.Liveness, c.Readiness = probe("startup?"), probe("liveness?"), probe("readiness?")
	c.PostStart, c.PreStop = hook("postStart?"), hook("preStop?")
}

// drawPriority gives containers of some pods launch priorities.
func drawPriority(n func(label string, low, high int) int, p *pod.Plan) {
	for i := range p.Containers {
		if n("priority?", 0, 3) == 0 {
			p.Containers[i].Priority = n("priority", -1, 1)
		}
	}
}

// judgeAsk checks that a probe or a hook may start: its container runs, there is one of a kind at a
// time, a hook runs once.
func (f *fake) judgeAsk(a Action) {
	p := f.proc(a.Container)
	q := probeOrHook{a.Container, a.Attempt, a.Probe, a.Hook}
	switch {
	case a.Attempt != p.attempt || !p.everStarted:
		f.Fatalf("%+v of attempt %d, which is %s", a, p.attempt, p.state)
	case slices.Contains(f.underWay, q):
		f.Fatalf("%+v while one is under way", a)
	case a.Kind == RunHook && slices.Contains(p.hooked, a.Hook):
		f.Fatalf("%+v a second time", a)
	case f.stopRequested && a.Kind == RunProbe && a.Probe != Readiness, f.stopRequested && a.Hook == PostStart:
		f.Fatalf("%+v in a pod that is being stopped", a)
	}
	planned, _ := f.plan.Container(a.Container)
	if planned.PostStart != nil && a.Kind == RunProbe && !p.postStarted {
		f.Fatalf("%+v before its postStart hook is done", a)
	}
	if planned.Startup != nil && a.Kind == RunProbe && (a.Probe == Startup) == p.startupDone {
		f.Fatalf("%+v, startup probe done: %t", a, p.startupDone)
	}
}

// judgeOrder checks the start of a container against hooks and priorities of other containers.
func (f *fake) judgeOrder(a Action) {
	index := slices.IndexFunc(f.plan.Containers, func(c pod.Container) bool { return c.Name == a.Container })
	for i := range f.plan.Containers {
		c := &f.plan.Containers[i]
		p := f.proc(c.Name)
		if i < index && c.PostStart != nil && p.live() && !p.postStarted {
			f.Fatalf("%+v before the postStart hook of %s is done", a, c.Name)
		}
		if index >= 0 && a.Attempt == 0 && c.Priority > f.plan.Containers[index].Priority && !p.everStarted && p.attempt < 0 {
			f.Fatalf("%+v before %s, which has a higher priority", a, c.Name)
		}
	}
	for i := range f.plan.InitContainers {
		c := &f.plan.InitContainers[i]
		if c.Name == a.Container {
			return
		}
		if p := f.proc(c.Name); c.Sidecar && (c.Startup != nil && !p.everStartup || c.PostStart != nil && !p.everPostStarted) {
			f.Fatalf("%+v before sidecar %s has started", a, c.Name)
		}
	}
}

// begin starts a probe or a hook.
func (f *fake) begin(a Action) {
	p := f.proc(a.Container)
	if a.Kind == RunHook {
		p.hooked = append(p.hooked, a.Hook)
	}
	f.underWay = append(f.underWay, probeOrHook{a.Container, a.Attempt, a.Probe, a.Hook})
}

func (p *proc) note(hook HookKind) {
	if hook == PostStart {
		p.postStarted, p.everPostStarted = true, true
	}
}

// answerOne delivers an outcome of a probe or a hook.
func (f *fake) answerOne() {
	if len(f.underWay) == 0 {
		return
	}
	i := f.draw("question", 0, len(f.underWay)-1)
	q := f.underWay[i]
	f.underWay = slices.Delete(f.underWay, i, i+1)
	e := Event{Kind: Probed, Container: q.container, Attempt: q.attempt, Probe: q.probe, Hook: q.hook}
	if q.hook != "" {
		e.Kind = Hooked
	}
	e.Outcome = []Outcome{Success, Success, Success, Failure, Failure, Unknown}[f.draw("outcome", 0, 5)]
	p, observed := f.proc(q.container), f.seen.container(q.container)
	if e.Outcome == Success && q.attempt == p.attempt && observed.State == RunRunning && f.seen.Ending == nil {
		p.note(q.hook)
		if q.probe == Startup {
			p.startupDone, p.everStartup = true, true
		}
	}
	f.apply(e)
}

// alter replaces the supervisor: no probe or hook is under way any more.
func (f *fake) alter() {
	f.underWay = nil
	for name, p := range f.procs {
		if f.seen.container(name).State != RunRunning {
			continue
		}
		if slices.Contains(p.hooked, PostStart) {
			p.note(PostStart)
		}
		p.hooked = slices.DeleteFunc(p.hooked, func(h HookKind) bool { return h == PreStop })
	}
	f.apply(Event{Kind: Recovered})
}

// killEnd returns when the grace ends of a container that is stopped while the pod continues.
func (f *fake) killEnd(name string) (end int64, ok bool) {
	k := f.seen.container(name).Kill
	if k == nil {
		return 0, false
	}
	return int64(k.GraceEnd - bootBegin), true
}
