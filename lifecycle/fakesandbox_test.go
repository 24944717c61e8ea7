package lifecycle

import (
	"github.com/podrun/podrun/pod"
)

// die takes the sandbox away with everything that runs in it, and with the supervisor that
// would have told what happened before.
func (f *fake) die() {
	if f.sandbox == SandboxNone || f.sandbox == SandboxDown {
		return
	}
	f.inbox, f.questions = nil, nil
	for _, p := range f.procs {
		if p.live() {
			p.state, p.code, p.oom = RunEnded, 137, false
		}
	}
	f.apply(Event{Kind: SandboxDied, Attempt: f.number, Message: "no luck"})
	for name, p := range f.procs {
		if c := f.seen.container(name); c.State == RunEnded && c.Ended == f.now().Boot {
			p.seenEnd = f.boot
			p.code, p.oom = c.End.ExitCode, c.End.Reason == reasonOOMKilled // how it really ended nobody can know
		}
	}
	f.sandbox = SandboxRemoving
	f.another()
}

// another is after a sandbox has gone: there may be another.
func (f *fake) another() {
	if f.sandbox != SandboxDown && f.sandbox != SandboxRemoving {
		return // the end of an earlier one, told again
	}
	f.sandbox, f.broken = SandboxDown, false
	if f.seen.Ending != nil {
		return
	}
	if f.plan.RestartPolicy == pod.RestartNever && f.anyMade() {
		f.Fatalf("another sandbox under Never: %+v", f.seen)
	}
	f.sandbox = SandboxNone
	f.number++
	f.renew()
}

// anyMade says whether the fake has seen a container that was made.
func (f *fake) anyMade() bool {
	for name, p := range f.procs {
		if p.attempt >= 0 && f.seen.container(name).State != RunUnmade {
			return true
		}
	}
	return false
}

// renew has everything begin anew.
func (f *fake) renew() {
	for _, p := range f.procs {
		p.everStarted, p.everPostStarted, p.everStartup = false, false, false
	}
}

// noteRenewed renews when the end of a container has restarted all.
func (f *fake) noteRenewed() {
	if f.seen.Restarting || f.seen.Ending == nil && f.allRenewed() {
		f.renew()
	}
}

// allRenewed says whether no container has been begun since everything was.
func (f *fake) allRenewed() bool {
	for name, p := range f.procs {
		if p.attempt >= 0 && f.seen.container(name).Renew == RenewNone {
			return false
		}
	}
	return true
}

// breakSandbox lets no container be started any more.
func (f *fake) breakSandbox() {
	if again := f.broken && f.seen.Ending == nil; !again && (f.sandbox != SandboxUp || f.broken || f.seen.Sandbox != SandboxUp) {
		return
	}
	f.broken = true
	f.apply(Event{Kind: SandboxLost, Attempt: f.number, Message: "broken"})
}

// drawRules lets the end of some container restart all.
func drawRules(n func(label string, low, high int) int, p *pod.Plan) {
	for _, list := range [][]pod.Container{p.InitContainers, p.Containers} {
		for i := range list {
			if n("rule?", 0, 5) == 0 {
				list[i].RestartRules = []pod.RestartRule{{ExitCodes: []int{n("code", 0, 1)}, All: true}}
			}
		}
	}
}

// renewed says whether a container is to be run whatever became of its latest run.
func (f *fake) renewed(name string) bool {
	r := f.seen.container(name).Renew
	return r == RenewAnew || r == RenewCause
}
