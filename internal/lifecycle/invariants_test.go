package lifecycle

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

// decide is the supervisor's loop; it checks every decision and action.
func (f *fake) decide() {
	for rounds := 0; ; rounds++ {
		if rounds > 100 {
			f.Fatalf("the decisions have no end: %+v", f.last)
		}
		d := Decide(f.plan, &f.seen, f.now())
		if diff := cmp.Diff(d, Decide(f.plan, &f.seen, f.now())); diff != "" {
			f.Fatalf("two answers to one question:\n%s", diff)
		}
		if d.Wake != 0 && d.Wake <= f.now().Boot {
			f.Fatalf("wake %s is not after now %s", d.Wake, f.now().Boot)
		}
		f.last = d
		for _, a := range d.Actions {
			f.judge(a)
			f.apply(Event{Kind: Issued, Action: &a})
		}
		if len(d.Actions) == 0 {
			break
		}
		again := Decide(f.plan, &f.seen, f.now())
		if want := (Decision{Wake: d.Wake, Done: d.Done}); cmp.Diff(want, again) != "" {
			f.Fatalf("after %+v was issued: %+v", d, again)
		}
		f.last = again
		for _, a := range d.Actions {
			f.carryOut(a)
		}
	}
	f.judgeRest()
	f.judgeStatus()
}

// judgeRest checks a decision without actions: either an event will follow, or the pod is over.
func (f *fake) judgeRest() {
	live := f.anyLive(f.plan.InitContainers) || f.anyLive(f.plan.Containers)
	pending := live || len(f.underWay) > 0 || len(f.inbox) > 0 || f.sandbox == SandboxCreating || f.sandbox == SandboxRemoving
	if !f.last.Done && f.last.Wake == 0 && !pending {
		f.Fatalf("stuck: %+v", f.seen)
	}
	if before := f.now(); f.last.Wake != 0 {
		before.Boot = f.last.Wake - 1
		if d := Decide(f.plan, &f.seen, before); len(d.Actions) > 0 {
			f.Fatalf("wake %s is too late for %+v", f.last.Wake, d.Actions)
		}
	}
	if f.last.Done && (live || f.sandbox == SandboxUp || f.sandbox == SandboxRemoving) {
		f.Fatalf("done too early: %+v", f.seen)
	}
}

func (f *fake) judgeStatus() {
	s := Status(f.plan, &f.seen, f.now())
	if f.phase.Terminal() && s.Phase != f.phase {
		f.Fatalf("the phase left %s for %s", f.phase, s.Phase)
	}
	f.phase = s.Phase
	if f.last.Done && !s.Phase.Terminal() {
		f.Fatalf("done in phase %s", s.Phase)
	}
	if s.Deleting != f.stopRequested {
		f.Fatalf("deleting is %t, asked is %t", s.Deleting, f.stopRequested)
	}
	for _, c := range s.Conditions {
		if c.Type != initialized {
			continue
		}
		if f.initialized && c.Status != isTrue {
			f.Fatalf("Initialized went back: %+v", c)
		}
		f.initialized = c.Status == isTrue
	}
}

// judge checks that an action is allowed by the real state.
func (f *fake) judge(a Action) {
	switch a.Kind {
	case CreateSandbox:
		if f.sandbox != SandboxNone || f.stopRequested || a.Attempt != f.number {
			f.Fatalf("sandbox made while %q, stop asked %t", f.sandbox, f.stopRequested)
		}
	case StartContainer:
		f.judgeStart(a)
		f.judgeOrder(a)
		if f.withoutBackoff(a) {
			f.proc(a.Container).free++
		}
	case RunProbe, RunHook:
		f.judgeAsk(a)
	case StopContainer, KillContainer:
		f.judgeStop(a)
	case RemoveSandbox:
		if f.anyLive(f.plan.InitContainers) || f.anyLive(f.plan.Containers) || f.sandbox != SandboxUp {
			f.Fatalf("the sandbox (%s) does not go last", f.sandbox)
		}
	default:
		f.Fatalf("unknown action %+v", a)
	}
}

// withoutBackoff reports whether a start has no back-off: another container's end or the loss of the sandbox causes it.
func (f *fake) withoutBackoff(a Action) bool {
	how := f.seen.container(a.Container).FreshStart
	return how == FreshFromScratch || how == FreshAfterLoss
}

func (f *fake) judgeStart(a Action) {
	p := f.proc(a.Container)
	switch {
	case f.stopRequested:
		f.Fatalf("%+v after stop", a)
	case f.sandbox != SandboxUp || f.broken || f.seen.Restarting:
		f.Fatalf("%+v in a sandbox that is %q, broken %t, restarting %t", a, f.sandbox, f.broken, f.seen.Restarting)
	case p.live():
		f.Fatalf("%+v while attempt %d is %s", a, p.attempt, p.state)
	case a.Attempt != p.attempt+1:
		f.Fatalf("%+v after attempt %d", a, p.attempt)
	case p.attempt >= 1+p.free && !f.withoutBackoff(a) && p.seenEnd-p.issued <= backoffReset && f.boot < p.seenEnd+backoffBase:
		f.Fatalf("%+v at %s without back-off, ended at %s", a, f.boot, p.seenEnd)
	}
	for i := range f.plan.InitContainers {
		c := &f.plan.InitContainers[i]
		if c.Name == a.Container {
			if ended := p.attempt >= 0 && !f.restarted(c.Name); ended && !c.Sidecar && (f.plan.RestartPolicy == pod.RestartNever || p.code == 0 && !p.oom) {
				f.Fatalf("%+v again under %s after %d", a, f.plan.RestartPolicy, p.code)
			}
			return
		}
		before := f.proc(c.Name)
		if c.Sidecar && !before.everStarted || !c.Sidecar && (f.restarted(c.Name) || before.state != RunEnded || before.code != 0 || before.oom) {
			f.Fatalf("%+v before %s: %+v", a, c.Name, before)
		}
	}
	policy := f.plan.RestartPolicy
	if f.restarted(a.Container) {
		return
	}
	if k := f.seen.container(a.Container).Kill; policy == pod.RestartOnFailure && k != nil && k.Why != KillPostStart {
		return
	}
	if p.attempt >= 0 && (policy == pod.RestartNever || policy == pod.RestartOnFailure && p.code == 0) {
		f.Fatalf("%+v again under %s after %d", a, policy, p.code)
	}
}

// judgeStop computes the end of the grace independently, except for the time at which a pod ended
// by itself.
func (f *fake) judgeStop(a Action) {
	p := f.proc(a.Container)
	if a.Attempt != p.attempt {
		f.Fatalf("%+v of attempt %d", a, p.attempt)
	}
	end := time.Duration(1<<63 - 1)
	kill, killed := f.killEnd(a.Container)
	if killed {
		end = time.Duration(kill)
	}
	if e := f.seen.currentEnding(f.plan, f.now()); e == nil {
		if !killed {
			f.Fatalf("%+v though the pod goes on", a)
		}
	} else if e.Cause != EndRequested {
		end = min(end, e.Since.Boot-bootBegin+time.Duration(f.plan.GraceSeconds)*time.Second)
	}
	for _, b := range f.bounds {
		end = min(end, b)
	}
	if a.Kind == StopContainer {
		if p.term != nil {
			f.Fatalf("%+v a second time", a)
		}
		if f.boot < end && !f.isTurn(a.Container) && !(killed && f.seen.currentEnding(f.plan, f.now()) == nil) {
			f.Fatalf("%+v before its turn", a)
		}
		return
	}
	switch {
	case f.atOnce, f.seen.container(a.Container).Kill != nil && f.seen.container(a.Container).Kill.AtOnce:
	case f.seen.Ending != nil && f.seen.Ending.AtOnce: // its sandbox is broken
	case f.boot < end:
		f.Fatalf("%+v at %s, the grace ends at %s", a, f.boot, end)
	case p.term == nil && f.seen.container(a.Container).State == RunRunning:
		f.Fatalf("%+v without a stop signal", a)
	case p.term != nil && f.boot < *p.term+minimumGrace:
		f.Fatalf("%+v at %s, stop signal at %s", a, f.boot, *p.term)
	}
}

// isTurn reports whether a sidecar may be stopped: no app and no later sidecar lives. Other
// containers need not wait.
func (f *fake) isTurn(name string) bool {
	inits := f.plan.InitContainers
	for i := range inits {
		if inits[i].Name != name || !inits[i].Sidecar {
			continue
		}
		for _, later := range inits[i+1:] {
			if later.Sidecar && f.proc(later.Name).live() {
				return false
			}
		}
		return !f.anyLive(f.plan.Containers)
	}
	return true
}

// carryOut changes the real state as the supervisor would.
func (f *fake) carryOut(a Action) {
	p := f.proc(a.Container)
	switch a.Kind {
	case CreateSandbox:
		f.sandbox = SandboxCreating
	case RemoveSandbox:
		f.sandbox = SandboxRemoving
	case StartContainer:
		*p = proc{state: RunStarting, attempt: a.Attempt, issued: f.boot, everStarted: p.everStarted, free: p.free,
			everPostStarted: p.everPostStarted, everStartup: p.everStartup}
	case RunProbe, RunHook:
		f.begin(a)
	case StopContainer:
		now := f.boot
		p.term = &now
	case KillContainer:
		if p.state == RunRunning {
			f.exit(a.Container, 137, false)
		} // a kill of a container that is still starting is lost
	}
}
