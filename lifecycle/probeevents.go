package lifecycle

import (
	"cmp"
	"fmt"

	"github.com/podrun/podrun/pod"
)

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
