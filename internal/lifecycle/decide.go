package lifecycle

import (
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Decide returns the actions that are due now. It changes nothing. After the actions are applied as
// Issued, another call returns none.
//
// The actions of one Decision are independent of each other and may run at the same time. Wake
// is valid once they are applied as Issued.
func Decide(plan *pod.Plan, o *Observed, now Now) Decision {
	d := &decision{plan: plan, seen: o, now: now, ending: o.currentEnding(plan, now)}
	d.decide()
	return d.Decision
}

// decide makes the decision.
func (d *decision) decide() {
	plan, o, now := d.plan, d.seen, d.now
	paused := d.advancePause()
	switch {
	case paused:
	case d.ending != nil:
		d.stop()
	case o.Sandbox == SandboxNone && now.Boot < o.Retry:
		d.wakeAt(o.Retry)
	case o.Sandbox == SandboxNone:
		d.do(CreateSandbox, "", o.Attempt)
	case o.Sandbox == SandboxBroken && o.idle(plan):
		d.do(RemoveSandbox, "", o.Attempt)
	case o.Sandbox == SandboxBroken, o.Restarting:
		d.endKilledRuns()
	case o.Sandbox == SandboxUp:
		d.startEphemeral()
		if d.startInits() {
			d.startApps()
		}
		d.measure()
		d.endKilledRuns()
	}
	if !paused {
		d.issueProbesAndHooks()
	}
	if d.ending == nil {
		if deadline, ok := o.deadline(plan, now); ok {
			d.wakeAt(deadline)
		}
	}
}

// decision is a Decision being made.
type decision struct {
	Decision
	plan   *pod.Plan
	seen   *Observed
	now    Now
	ending *Ending

	delegable func(*pod.Container, ProbeKind) bool // nil, except in Delegate
	steady    []SteadyProbe                        // probes left to others
	underWay  bool                                 // a probe runs
}

// issueProbesAndHooks issues probes and postStart hooks of running containers.
func (d *decision) issueProbesAndHooks() {
	for _, list := range [][]pod.Container{d.plan.InitContainers, d.plan.Containers} {
		for i := range list {
			c := &list[i]
			observed := d.seen.container(c.Name)
			if observed.State != RunRunning || observed.KillIssued || d.isKilled(c.Name) {
				continue
			}
			stopping := d.ending != nil || observed.Kill != nil
			if !stopping {
				d.hook(c, observed, PostStart)
			}
			d.probes(c, stopping)
		}
	}
}

// isKilled reports whether this decision kills a container: no probe or hook is issued for it.
func (d *decision) isKilled(container string) bool {
	return slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == KillContainer && a.Container == container })
}

func (d *decision) do(kind ActionKind, container string, attempt int) {
	d.act(Action{Kind: kind, Container: container, Attempt: attempt})
}

func (d *decision) act(a Action) {
	if d.Actions == nil {
		d.Actions = make([]Action, 0, len(d.plan.InitContainers)+len(d.plan.Containers))
	}
	d.Actions = append(d.Actions, a)
}

// wakeAt requests another decision at a CLOCK_BOOTTIME in the future.
func (d *decision) wakeAt(moment time.Duration) {
	if d.Wake == 0 || moment < d.Wake {
		d.Wake = moment
	}
}
