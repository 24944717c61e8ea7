package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// PauseState is the state of a pause.
type PauseState string

const (
	PauseNone     PauseState = ""
	PausePending  PauseState = "pending"  // nothing new starts; containers that are starting come to run first
	PauseFreezing PauseState = "freezing" // FreezeSandbox was issued
	PauseOn       PauseState = "on"       // no process of a container runs
	PauseEnding   PauseState = "ending"   // the end of the pause is due; ThawSandbox is not issued yet
	PauseThawing  PauseState = "thawing"  // ThawSandbox was issued
)

// Pause is the state of a pause that a user has requested: the pod's containers do nothing for a
// while. Meanwhile nothing starts, stops or is probed, and outcomes of probes are ignored. A pod
// that has to end is resumed first. Kubernetes has no such feature.
type Pause struct {
	State PauseState    `json:"state,omitempty"`
	Since time.Duration `json:"since,omitempty"` // CLOCK_BOOTTIME of the request
	Until time.Duration `json:"until,omitempty"` // CLOCK_BOOTTIME at which the previous pause was over
}

// mayBeFrozen reports whether processes may be frozen.
func (p *Pause) mayBeFrozen() bool { return p.State != PauseNone && p.State != PausePending }

// paused reports whether the status shows the pod as paused: until the last process runs again.
func (p *Pause) paused() bool { return p.mayBeFrozen() && p.State != PauseFreezing }

// advancePause advances a pause, and reports whether it excludes all other actions.
func (d *decision) advancePause() bool {
	p := d.seen.Pause.State
	needsRunning := d.ending != nil || d.seen.Sandbox != SandboxUp || d.seen.Restarting
	switch {
	case p == PauseNone, p == PausePending && needsRunning:
		return false
	case p == PausePending:
		if !d.seen.starting() {
			d.do(FreezeSandbox, "", d.seen.Attempt)
		}
	case p == PauseEnding, p != PauseThawing && needsRunning:
		d.do(ThawSandbox, "", d.seen.Attempt)
	}
	return !needsRunning
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

// pauseEvent applies requests of users and the results of freezing and thawing.
func (o *Observed) pauseEvent(e Event) {
	p := &o.Pause
	switch {
	case e.Kind == PauseRequested && p.State == PauseNone && o.Ending == nil && o.Sandbox == SandboxUp:
		p.State, p.Since = PausePending, e.At.Boot
	case e.Kind == UnpauseRequested && p.State == PausePending:
		o.resumed(e.At.Boot)
	case e.Kind == UnpauseRequested && (p.State == PauseFreezing || p.State == PauseOn):
		p.State = PauseEnding
	case e.Kind == Frozen && p.State == PauseFreezing:
		p.State = PauseOn
	case e.Kind == Thawed && p.State == PauseThawing:
		o.resumed(e.At.Boot)
	}
}

// issued records the intent to freeze or to thaw.
func (p *Pause) issued(kind ActionKind) {
	switch {
	case kind == FreezeSandbox && p.State == PausePending:
		p.State = PauseFreezing
	case kind == ThawSandbox && p.mayBeFrozen():
		p.State = PauseThawing
	}
}

// repeatAction makes Decide repeat an action that a previous supervisor may not have carried out.
func (p *Pause) repeatAction() {
	switch p.State {
	case PauseFreezing:
		p.State = PausePending
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

// ranDuringPause reports whether an event is the outcome of a probe that ran during a pause.
func (o *Observed) ranDuringPause(plan *pod.Plan, e Event) bool {
	c, ok := o.Containers[e.Container]
	if e.Kind != Probed || !ok || c.Attempt != e.Attempt {
		return false
	}
	planned, ok := plan.Container(e.Container)
	if !ok || PlannedProbe(planned, e.Probe) == nil {
		return false
	}
	return o.Pause.State != PauseNone || c.probe(e.Probe).Next-period(PlannedProbe(planned, e.Probe)) < o.Pause.Until
}
