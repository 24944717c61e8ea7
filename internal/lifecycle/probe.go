package lifecycle

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// ProbeKind names one of a container's probes.
type ProbeKind string

const (
	Startup   ProbeKind = "startup"
	Liveness  ProbeKind = "liveness"
	Readiness ProbeKind = "readiness"
)

// Outcome is the result of a probe or a hook.
type Outcome string

const (
	Success Outcome = "success"
	Failure Outcome = "failure"
	Unknown Outcome = "unknown" // the probe could not run: no statement about the container
)

// ProbeRun is the state of one probe of a container's latest run.
type ProbeRun struct {
	Next     time.Duration `json:"next,omitempty"` // CLOCK_BOOTTIME of the next; 0: it has not run yet
	UnderWay bool          `json:"underWay,omitempty"`
	Last     Outcome       `json:"last,omitempty"`   // the latest that is not Unknown
	InARow   int           `json:"inARow,omitempty"` // how often Last has occurred in a row
	Result   Outcome       `json:"result,omitempty"` // the result by the thresholds; "" before they are reached
}

// PlannedProbe returns a container's probe of a kind, or nil.
func PlannedProbe(c *pod.Container, kind ProbeKind) *pod.Probe {
	switch kind {
	case Startup:
		return c.Startup
	case Liveness:
		return c.Liveness
	case Readiness:
		return c.Readiness
	}
	return nil
}

func period(p *pod.Probe) time.Duration { return max(seconds(p.PeriodSeconds), time.Second) }

func (c *Container) probe(kind ProbeKind) *ProbeRun {
	switch kind {
	case Startup:
		return &c.Startup
	case Liveness:
		return &c.Liveness
	default:
		return &c.Readiness
	}
}

// probes issues the container's probes that are due, or waits for them. The startup probe blocks
// the others until it has succeeded. While a container is being stopped, only its readiness probe
// runs (kubelet: pkg/kubelet/prober).
//
// The first probe is due when its delay after the container's start is over, then one every period.
// The kubelet waits up to one period for the next tick of a worker that started earlier; podrun
// does not.
func (d *decision) probes(c *pod.Container, stopping bool) {
	observed := d.seen.container(c.Name)
	if !isRunning(c, observed) {
		return
	}
	if c.Startup != nil && observed.Startup.Result != Success {
		if !stopping && observed.Startup.Result == "" {
			d.probe(c, observed, Startup)
		}
		return
	}
	if !stopping && c.Liveness != nil && observed.Liveness.Result != Failure {
		d.probe(c, observed, Liveness)
	}
	if c.Readiness != nil {
		d.probe(c, observed, Readiness)
	}
}

func (d *decision) probe(c *pod.Container, observed *Container, kind ProbeKind) {
	run := observed.probe(kind)
	if run.UnderWay {
		d.underWay = true
		return
	}
	if d.isSteady(c, observed, kind) && d.delegable != nil && d.delegable(c, kind) {
		d.steady = append(d.steady, SteadyProbe{Container: c.Name, Attempt: observed.Attempt, Kind: kind, Next: run.Next, Period: period(PlannedProbe(c, kind))})
		return
	}
	moment := run.Next
	if moment == 0 {
		moment = observed.StartedBoot + seconds(PlannedProbe(c, kind).InitialDelaySeconds)
	}
	if d.now.Boot < moment {
		d.wakeAt(moment)
		return
	}
	d.act(Action{Kind: RunProbe, Container: c.Name, Attempt: observed.Attempt, Probe: kind})
}

// reset ends a probe that was under way with an earlier supervisor, and its count, for a run that
// is up since then; planned is nil if the plan has no such container.
func (r *ProbeRun) reset(up time.Duration, planned *pod.Container, kind ProbeKind, e Event) {
	r.UnderWay, r.Last, r.InARow = false, "", 0
	if planned == nil || e.Seed == 0 || PlannedProbe(planned, kind) == nil {
		return
	}
	spec := PlannedProbe(planned, kind)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s", e.Seed, planned.Name, kind)
	late := time.Duration(h.Sum64() % uint64(period(spec)))
	r.Next = max(e.At.Boot+late, up+seconds(spec.InitialDelaySeconds))
}

// issuedProbe records the intent to probe.
func (c *Container) issuedProbe(planned *pod.Container, now Now, kind ProbeKind) {
	spec := PlannedProbe(planned, kind)
	if spec == nil || c.State != RunRunning {
		return
	}
	run := c.probe(kind)
	run.UnderWay, run.Next = true, now.Boot+period(spec)
}

// probed applies a probe's outcome and applies the thresholds: a failed startup or liveness probe
// ends the run.
func (c *Container) probed(plan *pod.Plan, planned *pod.Container, e Event) {
	spec := PlannedProbe(planned, e.Probe)
	if spec == nil || c.State != RunRunning || !c.probe(e.Probe).UnderWay {
		return
	}
	run := c.probe(e.Probe)
	run.UnderWay = false
	if e.Outcome != Success && e.Outcome != Failure {
		return
	}
	if run.Last != e.Outcome {
		run.Last, run.InARow = e.Outcome, 0
	}
	threshold := spec.SuccessThreshold
	if e.Outcome == Failure {
		threshold = spec.FailureThreshold
	}
	if run.InARow = min(run.InARow+1, max(threshold, 1)); run.InARow < threshold {
		return
	}
	run.Result = e.Outcome
	if e.Outcome == Success || e.Probe == Readiness || c.Kill != nil {
		return
	}
	reason := KillLiveness
	if e.Probe == Startup {
		reason = KillStartup
	}
	g := plan.GraceSeconds
	if spec.GraceSeconds != nil {
		g = *spec.GraceSeconds
	}
	c.Kill = &Kill{Why: reason, Since: e.At, GraceEnd: e.At.Boot + grace(g)}
}

// The kubelet's reasons of events about probes and hooks.
const (
	eventUnhealthy    = "Unhealthy"
	eventProbeWarning = "ProbeWarning"
	eventPostStart    = "FailedPostStartHook"
	eventPreStop      = "FailedPreStopHook"
)

// noteProbeOrHook records a probe's or a hook's outcome, and the container's end if the outcome causes
// it.
func (o *Observed) noteProbeOrHook(plan *pod.Plan, was moment, e Event) {
	c := o.container(e.Container)
	switch e.Kind {
	case Probed:
		if was.c.probe(e.Probe).UnderWay && !c.probe(e.Probe).UnderWay {
			o.noteProbe(e)
		}
	case Hooked:
		if was.c.hook(e.Hook).Outcome == "" && c.hook(e.Hook).Outcome == Failure {
			reason, text := eventPostStart, "PostStartHook failed"
			if e.Hook == PreStop {
				reason, text = eventPreStop, "PreStopHook failed"
			}
			o.note(e.At, pod.Warning, reason, e.Container, joinMessage(text, e.Message))
		}
	}
	if planned, ok := plan.Container(e.Container); ok && was.c.Kill == nil && c.Kill != nil && !c.Kill.AtOnce {
		o.note(e.At, pod.Normal, eventKilling, e.Container, killing(plan, planned, c.Kill.Why))
	}
}

// noteProbe uses the kubelet's messages (pkg/kubelet/prober).
func (o *Observed) noteProbe(e Event) {
	title := map[ProbeKind]string{Startup: "Startup", Liveness: "Liveness", Readiness: "Readiness"}[e.Probe]
	switch {
	case e.Outcome == Failure:
		o.note(e.At, pod.Warning, eventUnhealthy, e.Container, title+" probe failed: "+e.Message)
	case e.Outcome == Unknown:
		o.note(e.At, pod.Warning, eventUnhealthy, e.Container, title+" probe errored and resulted in unknown state: "+e.Message)
	case e.Message != "":
		o.note(e.At, pod.Warning, eventProbeWarning, e.Container, title+" probe warning: "+e.Message)
	}
}

// killing returns the message of a container that is ended while the pod continues (kubelet:
// computePodActions in pkg/kubelet/kuberuntime).
func killing(plan *pod.Plan, planned *pod.Container, reason KillReason) string {
	if reason == KillPostStart {
		return eventPostStart
	}
	probe := Liveness
	if reason == KillStartup {
		probe = Startup
	}
	if planned.Sidecar {
		return fmt.Sprintf("Init container %s failed %s probe", planned.Name, probe)
	}
	text := fmt.Sprintf("Container %s failed %s probe", planned.Name, probe)
	if cmp.Or(planned.RestartPolicy, plan.RestartPolicy) != pod.RestartNever {
		text += ", will be restarted"
	}
	return text
}
