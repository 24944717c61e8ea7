package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// PauseState is where a pause stands.
type PauseState string

const (
	PauseNone     PauseState = ""
	PauseAsked    PauseState = "asked"    // nothing is begun any more; what is being started comes to run first
	PauseFreezing PauseState = "freezing" // FreezeSandbox was issued
	PauseOn       PauseState = "on"       // no process of a container runs
	PauseEnding   PauseState = "ending"   // it is to be over
	PauseThawing  PauseState = "thawing"  // ThawSandbox was issued
)

// Pause is what is known of a user's wish that a pod's containers do nothing for a while.
// Meanwhile nothing is started, stopped or asked, and what is answered counts for nothing; a
// pod that is to end goes on first. Kubernetes has no such thing.
type Pause struct {
	State PauseState    `json:"state,omitempty"`
	Since time.Duration `json:"since,omitempty"` // Boot time at which it was asked for
	Until time.Duration `json:"until,omitempty"` // Boot time at which the one before was over
}

// holds says whether processes may be frozen.
func (p *Pause) holds() bool { return p.State != PauseNone && p.State != PauseAsked }

// paused says whether the pod is shown as paused: until the last process goes on again.
func (p *Pause) paused() bool { return p.holds() && p.State != PauseFreezing }

// hold brings a pause forward, and says whether nothing else is to be done because of it.
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

// starting says whether a container is being made.
func (o *Observed) starting() bool {
	for _, c := range o.Containers {
		if c.State == RunStarting {
			return true
		}
	}
	return false
}

// pauseEvent folds what users wish and what has come of it.
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

// issuedPause folds the intent to freeze or to thaw.
func (p *Pause) issued(kind ActionKind) {
	switch {
	case kind == FreezeSandbox && p.State == PauseAsked:
		p.State = PauseFreezing
	case kind == ThawSandbox && p.holds():
		p.State = PauseThawing
	}
}

// adopt has done again what another supervisor may not have carried out.
func (p *Pause) adopt() {
	switch p.State {
	case PauseFreezing:
		p.State = PauseAsked
	case PauseThawing:
		p.State = PauseEnding
	}
}

// resumed ends a pause. The grace of containers that were to end has not gone by.
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

// disturbed says whether a probe that is under way was so during a pause.
func (o *Observed) disturbed(plan *pod.Plan, c *Container, e Event) bool {
	planned, ok := plan.Container(e.Container)
	if !ok || PlannedProbe(planned, e.Probe) == nil {
		return false
	}
	period := max(seconds(PlannedProbe(planned, e.Probe).PeriodSeconds), time.Second)
	return o.Pause.State != PauseNone || c.probe(e.Probe).Next-period < o.Pause.Until
}
