package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// Decide says what is to be done now. It changes nothing; once the actions are
// folded as Issued, the same question is answered with none.
//
// The actions of one Decision do not wait for each other: they may be carried
// out at the same time. Wake already counts on them.
func Decide(plan *pod.Plan, o *Observed, now Now) Decision {
	d := &decision{plan: plan, seen: o, now: now, ending: o.ending(plan, now)}
	switch {
	case d.ending != nil:
		d.stop()
	case o.Sandbox == SandboxNone:
		d.do(CreateSandbox, "", 0)
	case o.Sandbox == SandboxUp:
		if d.startInits() {
			d.startApps()
		}
		d.measure()
	}
	if d.ending == nil {
		if at, ok := o.deadline(plan, now); ok {
			d.wakeAt(at)
		}
	}
	return d.Decision
}

// decision is a Decision being made.
type decision struct {
	Decision
	plan   *pod.Plan
	seen   *Observed
	now    Now
	ending *Ending
}

func (d *decision) do(kind ActionKind, container string, attempt int) {
	if d.Actions == nil {
		d.Actions = make([]Action, 0, len(d.plan.InitContainers)+len(d.plan.Containers))
	}
	d.Actions = append(d.Actions, Action{Kind: kind, Container: container, Attempt: attempt})
}

// wakeAt asks for another decision at a Boot time that lies ahead.
func (d *decision) wakeAt(at time.Duration) {
	if d.Wake == 0 || at < d.Wake {
		d.Wake = at
	}
}
