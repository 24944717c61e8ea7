package cli

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// rollout says what a workload still waits for, in the words of kubectl rollout status
// (pkg/polymorphichelpers/rollout_status.go of kubectl), or "" if it is as it should be.
func (v *view) rollout(d *workload.Decision) string {
	n, c := v.spec.Replicas, d.Counts
	c0, stuck := v.state.Condition("Progressing")
	switch k := v.spec.Kind; {
	case k == pod.KindJob || k == pod.KindCronJob || d.Settled:
		return ""
	case stuck && v.state.Stuck():
		return c0.Message
	case v.spec.Paused:
		return "it is paused: its pods stay as they are"
	case k == pod.KindDeployment && c.Updated < n:
		return fmt.Sprintf("waiting for the rollout to finish: %d out of %d new replicas have been updated", c.Updated, n)
	case k == pod.KindDeployment && c.Replicas > c.Updated:
		return fmt.Sprintf("waiting for the rollout to finish: %d old replicas are pending termination", c.Replicas-c.Updated)
	case c.Ready < n && k != pod.KindDeployment:
		return fmt.Sprintf("waiting for %d pods to be ready", n-c.Ready)
	case c.Available < n:
		return fmt.Sprintf("waiting for the rollout to finish: %d of %d updated replicas are available", c.Available, n)
	case c.Replicas > n:
		return fmt.Sprintf("%d replicas are pending termination", c.Replicas-n)
	}
	return "waiting for the rollout to finish"
}

// waitsFor says what a workload waits for, if that is not what was said last.
func (f *front) waitsFor(v *view, last string) string {
	if v.state.Generation != v.object.Revision {
		return last // its controller has not seen it yet
	}
	d := v.decide(time.Now())
	text := v.rollout(&d)
	if text != "" && text != last {
		fmt.Fprintf(f.err, "podrun: %s: %s\n", v.name(), text)
	}
	return text
}
