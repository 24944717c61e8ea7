package follow

import (
	"fmt"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/workload"
)

// remaining returns what the rollout of a Deployment or a DaemonSet waits for, in kubectl's words, or "".
func remaining(v *resource.WorkloadInfo, d *workload.Decision) string {
	n, c := v.Spec.Replicas, d.Counts
	switch k := v.Spec.Kind; {
	case k == pod.KindDeployment && c.Updated < n:
		return fmt.Sprintf("%d out of %d new replicas have been updated", c.Updated, n)
	case k == pod.KindDeployment && c.Replicas > c.Updated:
		return fmt.Sprintf("%d old replicas are pending termination", c.Replicas-c.Updated)
	case k == pod.KindDeployment && c.Available < c.Updated:
		return fmt.Sprintf("%d of %d updated replicas are available", c.Available, c.Updated)
	case k == pod.KindDaemonSet && c.Updated < n:
		return fmt.Sprintf("%d out of %d new pods have been updated", c.Updated, n)
	case k == pod.KindDaemonSet && c.Available < n:
		return fmt.Sprintf("%d of %d updated pods are available", c.Available, n)
	}
	return ""
}

// Status returns the line of kubectl rollout status for a workload, and whether its rollout is complete
// (pkg/polymorphichelpers/rollout_status.go of kubectl). It is an error if no progress is possible, or if
// the strategy has no rollout.
func Status(v *resource.WorkloadInfo, d *workload.Decision) (text string, done bool, err error) {
	kind := map[pod.ObjectKind]string{pod.KindDeployment: "deployment", pod.KindDaemonSet: "daemon set", pod.KindStatefulSet: "statefulset"}[v.Spec.Kind]
	switch {
	case v.Spec.Kind != pod.KindDeployment && v.Spec.Strategy != workload.Rolling:
		return "", false, report.New(report.Failure, "podrun get "+v.Name()+" shows its pods", "rollout status is only available for RollingUpdate strategy type")
	case v.State.Generation != v.Object.Revision:
		return fmt.Sprintf("Waiting for %s spec update to be observed...", kind), false, nil
	case v.State.Stuck():
		return "", false, report.New(report.Failure, fmt.Sprintf("podrun get pods and podrun logs %[1]s show why; podrun rollout undo %[1]s goes back", v.Name()), "%s %q exceeded its progress deadline", kind, v.Object.Name)
	case v.Spec.Kind == pod.KindStatefulSet:
		text, done = statefulSetStatus(v, d.Counts)
		return text, done, nil
	}
	if rest := remaining(v, d); rest != "" {
		return fmt.Sprintf("Waiting for %s %q rollout to finish: %s...", kind, v.Object.Name, rest), false, nil
	}
	return fmt.Sprintf("%s %q successfully rolled out", kind, v.Object.Name), true, nil
}

func statefulSetStatus(v *resource.WorkloadInfo, c workload.Counts) (text string, done bool) {
	n := v.Spec.Replicas
	if c.Ready < n {
		return fmt.Sprintf("Waiting for %d pods to be ready...", n-c.Ready), false
	}
	if part := n - v.Spec.Partition; c.Updated < part {
		return fmt.Sprintf("Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...", c.Updated, part), false
	}
	return fmt.Sprintf("partitioned roll out complete: %d new pods have been updated...", c.Updated), true
}
