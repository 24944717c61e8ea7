package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// SteadyProbe is a probe of a running container whose next success changes nothing, so that another
// process can run it until it fails.
type SteadyProbe struct {
	Container string
	Attempt   int
	Kind      ProbeKind
	Next      time.Duration // CLOCK_BOOTTIME
	Period    time.Duration
}

// Delegation is the work that goes on while the supervisor of an idle pod hibernates: its steady probes, and when to
// decide again.
type Delegation struct {
	Probes []SteadyProbe
	Wake   time.Duration // decide again at this CLOCK_BOOTTIME at the latest; 0: only on an event
}

// Delegate returns the steady probes for which delegable returns true, and when to decide again while
// another process runs these. It returns false if there is something to do now, or a probe is under
// way.
func Delegate(plan *pod.Plan, o *Observed, now Now, delegable func(*pod.Container, ProbeKind) bool) (Delegation, bool) {
	d := &decision{plan: plan, seen: o, now: now, ending: o.currentEnding(plan, now), delegable: delegable}
	d.decide()
	return Delegation{Probes: d.steady, Wake: d.Wake}, len(d.Actions) == 0 && !d.underWay
}

// isSteady reports whether a success of a probe would change nothing. While the container or the pod
// is being stopped no probe is steady.
func (d *decision) isSteady(c *pod.Container, observed *Container, kind ProbeKind) bool {
	run := observed.probe(kind)
	return d.ending == nil && observed.Kill == nil && run.Result == Success && run.Last == Success &&
		run.InARow >= max(PlannedProbe(c, kind).SuccessThreshold, 1)
}

// ApplyDelegated applies the successes of probes that Delegate has returned: last has the CLOCK_BOOTTIME
// at which the latest success of each began, or 0. The next run of a probe is due one period after that; one
// without success, as before.
func (o *Observed) ApplyDelegated(plan *pod.Plan, probes []SteadyProbe, last []time.Duration) {
	for i, p := range probes {
		if i >= len(last) || last[i] == 0 {
			continue
		}
		now := Now{Boot: last[i]}
		o.Apply(plan, Event{At: now, Kind: Issued, Action: &Action{Kind: RunProbe, Container: p.Container, Attempt: p.Attempt, Probe: p.Kind}})
		o.Apply(plan, Event{At: now, Kind: Probed, Container: p.Container, Attempt: p.Attempt, Probe: p.Kind, Outcome: Success})
	}
}
