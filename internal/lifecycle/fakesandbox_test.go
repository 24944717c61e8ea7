package lifecycle

import (
	"github.com/podrun/podrun/internal/pod"
)

// die removes the sandbox with all its processes, and with the supervisor, so that queued events
// are lost.
func (f *fake) die() {
	if f.sandbox == SandboxNone || f.sandbox == SandboxDown {
		return
	}
	f.inbox, f.underWay = nil, nil
	for _, p := range f.procs {
		if p.live() {
			p.state, p.code, p.oom = RunEnded, 137, false
		}
	}
	f.apply(Event{Kind: SandboxKilled, Attempt: f.number, Message: "no luck"})
	for name, p := range f.procs {
		if c := f.seen.container(name); c.State == RunEnded && c.Ended == f.now().Boot {
			p.seenEnd = f.boot
			p.code, p.oom = c.End.ExitCode, c.End.Reason == reasonOOMKilled // the real exit status is lost
		}
	}
	f.sandbox = SandboxRemoving
	f.another()
}

// another decides whether another sandbox may follow after one has died.
func (f *fake) another() {
	if f.sandbox != SandboxDown && f.sandbox != SandboxRemoving {
		return // a repeated report of an earlier sandbox
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
	f.resetAll()
}

// anyMade reports whether any container was made.
func (f *fake) anyMade() bool {
	for name, p := range f.procs {
		if p.attempt >= 0 && f.seen.container(name).State != RunNotCreated {
			return true
		}
	}
	return false
}

// resetAll resets all containers.
func (f *fake) resetAll() {
	for _, p := range f.procs {
		p.everStarted, p.everPostStarted, p.everStartup = false, false, false
	}
}

// noteRestarted resets all containers when the end of one has restarted all.
func (f *fake) noteRestarted() {
	if f.seen.Restarting || f.seen.Ending == nil && f.allRestarted() {
		f.resetAll()
	}
}

// allRestarted reports whether no container has started since the reset.
func (f *fake) allRestarted() bool {
	for name, p := range f.procs {
		if p.attempt >= 0 && f.seen.container(name).FreshStart == FreshNone {
			return false
		}
	}
	return true
}

// breakSandbox makes every later container start fail.
func (f *fake) breakSandbox() {
	if again := f.broken && f.seen.Ending == nil; !again && (f.sandbox != SandboxUp || f.broken || f.seen.Sandbox != SandboxUp) {
		return
	}
	f.broken = true
	f.apply(Event{Kind: SandboxFailed, Attempt: f.number, Message: "broken"})
}

// drawRules gives some container a rule that restarts all containers.
func drawRules(n func(label string, low, high int) int, p *pod.Plan) {
	for _, list := range [][]pod.Container{p.InitContainers, p.Containers} {
		for i := range list {
			if n("rule?", 0, 5) == 0 {
				list[i].RestartRules = []pod.RestartRule{{ExitCodes: []int{n("code", 0, 1)}, All: true}}
			}
		}
	}
}

// restarted reports whether a container runs again regardless of its latest run.
func (f *fake) restarted(name string) bool {
	r := f.seen.container(name).FreshStart
	return r == FreshFromScratch || r == FreshAsCause
}
