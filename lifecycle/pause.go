package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// PauseState is the state of a pause.
type PauseState string

const (
	PauseNone     PauseState = ""
	PauseAsked    PauseState = "asked"    // nothing new starts; containers that are starting come to run first
	PauseFreezing PauseState = "freezing" // FreezeSandbox was issued
	PauseOn       PauseState = "on"       // no process of a container runs
	PauseEnding   PauseState = "ending"   // the pause is ending
	PauseThawing  PauseState = "thawing"  // ThawSandbox was issued
)

// Pause is the state of a pause that a user has requested: the pod's containers do nothing for a
// while. Meanwhile nothing starts, stops or is probed, and outcomes of probes are ignored. A pod
// that has to end is resumed first. Kubernetes has no such feature.
type Pause struct {
	State PauseState    `json:"state,omitempty"`
	Since time.Duration `json:"since,omitempty"` // Boot time of the request
	Until time.Duration `json:"until,omitempty"` // Boot time at which the previous pause was over
}

// holds reports whether processes may be frozen.
func (p *Pause) holds() bool { return p.State != PauseNone && p.State != PauseAsked }

// paused reports whether the status shows the pod as paused: until the last process runs again.
func (p *Pause) paused() bool { return p.holds() && p.State != PauseFreezing }

// hold advances a pause, and reports whether it excludes all other actions.
func (d *decision) hold() bool {
	p := d.seen.Pause.State
	over := d.ending != nil || d.seen.Sandbox != SandboxUp || d.seen.Restarting
	switch {
	case p == PauseNone, p == PauseAsked && over:
		return false
	case p == PauseAsked:
		if !d.seen.starting() {
			d.do(FreezeSandbox, "", d.seen.Attempt)
		}
	case p == PauseEnding, p != PauseThawing && over:
		d.do(ThawSandbox, "", d.seen.Attempt)
	}
	return !over
}

// starting reports whether a container is being made.
func (o *Observed) starting() bool {
	for _, c := range o.Containers {
		if c.State == RunStarting {
			return true
		}
	}
	return false
}

// pauseEvent folds requests of users and the results of freezing and thawing.
func (o *Observed) pauseEvent(e Event) {
	p := &o.Pause
	switch {
	case e.Kind == PauseWanted && p.State == PauseNone && o.Ending == nil && o.Sandbox == SandboxUp:
		p.State, p.Since = PauseAsked, e.At.Boot
	case e.Kind == ResumeWanted && p.State == PauseAsked:
		o.resumed(e.At.Boot)
	case e.Kind == ResumeWanted && (p.State == PauseFreezing || p.State == PauseOn):
		p.State = PauseEnding
	case e.Kind == Frozen && p.State == PauseFreezing:
		p.State = PauseOn
	case e.Kind == Thawed && p.State == PauseThawing:
		o.resumed(e.At.Boot)
	}
}

// issued folds the intent to freeze or to thaw.
func (p *Pause) issued(kind ActionKind) {
	switch {
	case kind == FreezeSandbox && p.State == PauseAsked:
		p.State = PauseFreezing
	case kind == ThawSandbox && p.holds():
		p.State = PauseThawing
	}
}

// adopt repeats an action that a previous supervisor may not have carried out.
func (p *Pause) adopt() {
	switch p.State {
	case PauseFreezing:
		p.State = PauseAsked
	case PauseThawing:
		p.State = PauseEnding
	}
}

// resumed ends a pause. Time spent paused does not count towards the grace of containers being
// stopped.
func (o *Observed) resumed(now time.Duration) {
	took := now - o.Pause.Since
	for _, c := range o.Containers {
		if c.Kill != nil {
			c.Kill.Since.Boot += took
			c.Kill.GraceEnd += took
		}
		if c.StopIssued != nil {
			*c.StopIssued += took
		}
	}
	o.Pause = Pause{Until: now}
}

// disturbed reports whether an event is the outcome of a probe that ran during a pause.
func (o *Observed) disturbed(plan *pod.Plan, e Event) bool {
	c, ok := o.Containers[e.Container]
	if e.Kind != Probed || !ok || c.Attempt != e.Attempt {
		return false
	}
	planned, ok := plan.Container(e.Container)
	if !ok || PlannedProbe(planned, e.Probe) == nil {
		return false
	}
	period := max(seconds(PlannedProbe(planned, e.Probe).PeriodSeconds), time.Second)
	return o.Pause.State != PauseNone || c.probe(e.Probe).Next-period < o.Pause.Until
}
