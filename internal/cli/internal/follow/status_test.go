package follow

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// TestStatus checks that the lines are the same as of kubectl rollout status.
func TestStatus(t *testing.T) {
	stuck := []pod.Condition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded", Message: "no progress"}}
	for _, tt := range []struct {
		kind       pod.ObjectKind
		counts     workload.Counts
		strategy   workload.Strategy
		partition  int
		conditions []pod.Condition
		unseen     bool
		want       string
		done       bool
		failed     bool
	}{
		{kind: pod.KindDeployment, unseen: true, want: "Waiting for deployment spec update to be observed..."},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 3, Updated: 1}, want: `Waiting for deployment "web" rollout to finish: 1 out of 2 new replicas have been updated...`},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 3, Updated: 2}, want: `Waiting for deployment "web" rollout to finish: 1 old replicas are pending termination...`},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2, Updated: 2, Available: 1}, want: `Waiting for deployment "web" rollout to finish: 1 of 2 updated replicas are available...`},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2, Updated: 2, Available: 2}, want: `deployment "web" successfully rolled out`, done: true},
		{kind: pod.KindDeployment, strategy: workload.Recreate, counts: workload.Counts{Replicas: 2, Updated: 2, Available: 2}, want: `deployment "web" successfully rolled out`, done: true},
		{kind: pod.KindDeployment, conditions: stuck, failed: true, want: `deployment "web" exceeded its progress deadline`},
		{kind: pod.KindDaemonSet, want: `Waiting for daemon set "web" rollout to finish: 0 out of 2 new pods have been updated...`},
		{kind: pod.KindDaemonSet, counts: workload.Counts{Updated: 2}, want: `Waiting for daemon set "web" rollout to finish: 0 of 2 updated pods are available...`},
		{kind: pod.KindDaemonSet, counts: workload.Counts{Updated: 2, Available: 2}, want: `daemon set "web" successfully rolled out`, done: true},
		{kind: pod.KindDaemonSet, strategy: workload.OnDelete, failed: true, want: "rollout status is only available for RollingUpdate strategy type"},
		{kind: pod.KindStatefulSet, counts: workload.Counts{Ready: 1}, want: "Waiting for 1 pods to be ready..."},
		{kind: pod.KindStatefulSet, counts: workload.Counts{Ready: 2, Updated: 1}, want: "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated..."},
		{kind: pod.KindStatefulSet, partition: 1, counts: workload.Counts{Ready: 2, Updated: 1}, want: "partitioned roll out complete: 1 new pods have been updated...", done: true},
	} {
		spec := &workload.Spec{Kind: tt.kind, Replicas: 2, Partition: tt.partition, Strategy: workload.Rolling}
		if tt.strategy != "" {
			spec.Strategy = tt.strategy
		}
		v := &resource.WorkloadInfo{Spec: spec, State: workload.State{Conditions: tt.conditions}, Object: &pod.Object{Kind: tt.kind, Name: "web"}}
		if tt.unseen {
			v.Object.Revision = 1
		}
		got, done, err := Status(v, &workload.Decision{Counts: tt.counts})
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || done != tt.done || (err != nil) != tt.failed {
			t.Errorf("%s %+v: %q, %v, %v", tt.kind, tt.counts, got, done, err)
		}
	}
}
