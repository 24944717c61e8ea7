package lifecycle

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/podrun/podrun/pod"
)

// ProbeKind names one of a container's probes.
type ProbeKind string

const (
	Startup   ProbeKind = "startup"
	Liveness  ProbeKind = "liveness"
	Readiness ProbeKind = "readiness"
)

// Outcome is what came of a probe or a hook.
type Outcome string

const (
	Success Outcome = "success"
	Failure Outcome = "failure"
	Unknown Outcome = "unknown" // it could not be asked: this says nothing of the container
)

// ProbeRun is what is known of one probe of a container's latest run.
type ProbeRun struct {
	Next     time.Duration `json:"next,omitempty"` // Boot time of the next; 0: there was none yet
	UnderWay bool          `json:"underWay,omitempty"`
	Last     Outcome       `json:"last,omitempty"`   // the latest that says something
	InARow   int           `json:"inARow,omitempty"` // how many times, without another in between
	Result   Outcome       `json:"result,omitempty"` // what the thresholds have made of it; "" before they were reached
}

// PlannedProbe gives a container's probe of a kind, or nil.
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

// probes issues what is due of a container's probes, or waits for it. The startup
// probe holds back the others until it has succeeded. A container that is being
// stopped is only asked whether it is still ready (kubelet: pkg/kubelet/prober).
//
// A probe is due for the first time when its delay after the container's start is
// over, and then every period. Where the kubelet waits for the next tick of a worker
// that began earlier, up to one period, we do not.
func (d *decision) probes(c *pod.Container, stopping bool) {
	seen := d.seen.container(c.Name)
	if !up(c, seen) {
		return
	}
	if c.Startup != nil && seen.Startup.Result != Success {
		if !stopping && seen.Startup.Result == "" {
			d.probe(c, seen, Startup)
		}
		return
	}
	if !stopping && c.Liveness != nil && seen.Liveness.Result != Failure {
		d.probe(c, seen, Liveness)
	}
	if c.Readiness != nil {
		d.probe(c, seen, Readiness)
	}
}

func (d *decision) probe(c *pod.Container, seen *Container, kind ProbeKind) {
	run := seen.probe(kind)
	if run.UnderWay {
		return
	}
	at := run.Next
	if at == 0 {
		at = seen.Up + seconds(PlannedProbe(c, kind).InitialDelaySeconds)
	}
	if d.now.Boot < at {
		d.wakeAt(at)
		return
	}
	d.act(Action{Kind: RunProbe, Container: c.Name, Attempt: seen.Attempt, Probe: kind})
}

// adopt forgets a probe that was under way with an earlier supervisor, and what it has
// counted, of a run that is up since then; planned is nil where the plan has no such container.
func (r *ProbeRun) adopt(up time.Duration, planned *pod.Container, kind ProbeKind, e Event) {
	r.UnderWay, r.Last, r.InARow = false, "", 0
	if planned == nil || e.Seed == 0 || PlannedProbe(planned, kind) == nil {
		return
	}
	spec := PlannedProbe(planned, kind)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s", e.Seed, planned.Name, kind)
	late := time.Duration(h.Sum64() % uint64(max(seconds(spec.PeriodSeconds), time.Second)))
	r.Next = max(e.At.Boot+late, up+seconds(spec.InitialDelaySeconds))
}

// issuedProbe folds the intent to probe.
func (c *Container) issuedProbe(planned *pod.Container, at Now, kind ProbeKind) {
	spec := PlannedProbe(planned, kind)
	if spec == nil || c.State != RunRunning {
		return
	}
	run := c.probe(kind)
	run.UnderWay, run.Next = true, at.Boot+max(seconds(spec.PeriodSeconds), time.Second)
}

// probed folds a probe's outcome, and what the thresholds make of it: a startup or
// liveness probe that has failed ends the run.
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
	why := KillLiveness
	if e.Probe == Startup {
		why = KillStartup
	}
	g := plan.GraceSeconds
	if spec.GraceSeconds != nil {
		g = *spec.GraceSeconds
	}
	c.Kill = &Kill{Why: why, Since: e.At, GraceEnd: e.At.Boot + grace(g)}
}

// The kubelet's reasons for what came of probes and hooks.
const (
	eventUnhealthy    = "Unhealthy"
	eventProbeWarning = "ProbeWarning"
	eventPostStart    = "FailedPostStartHook"
	eventPreStop      = "FailedPreStopHook"
)

// noteAsked tells what came of a probe or a hook, and that a container is ended
// because of it.
func (o *Observed) noteAsked(plan *pod.Plan, was moment, e Event) {
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
			o.note(e.At, pod.Warning, reason, e.Container, with(text, e.Message))
		}
	}
	if planned, ok := plan.Container(e.Container); ok && was.c.Kill == nil && c.Kill != nil && !c.Kill.AtOnce {
		o.note(e.At, pod.Normal, eventKilling, e.Container, killing(plan, planned, c.Kill.Why))
	}
}

// noteProbe is in the words of the kubelet (pkg/kubelet/prober).
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

// killing says why a container is ended while the pod goes on
// (kubelet: computePodActions in pkg/kubelet/kuberuntime).
func killing(plan *pod.Plan, planned *pod.Container, why KillReason) string {
	if why == KillPostStart {
		return eventPostStart
	}
	probe := Liveness
	if why == KillStartup {
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
