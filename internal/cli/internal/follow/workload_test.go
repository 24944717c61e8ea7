package follow

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// TestRolloutText checks that the text of an unfinished rollout is the same as of kubectl rollout status.
func TestRolloutText(t *testing.T) {
	stuck := []pod.Condition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded", Message: "no progress"}}
	for _, tt := range []struct {
		kind       pod.ObjectKind
		counts     workload.Counts
		conditions []pod.Condition
		paused     bool
		settled    bool
		want       string
	}{
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 3, Updated: 1, Ready: 2, Available: 2}, want: "waiting for the rollout to finish: 1 out of 2 new replicas have been updated"},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 3, Updated: 2, Ready: 2, Available: 2}, want: "waiting for the rollout to finish: 1 old replicas are pending termination"},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2, Updated: 2, Ready: 2, Available: 1}, want: "waiting for the rollout to finish: 1 of 2 updated replicas are available"},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2, Updated: 1}, conditions: stuck, want: "no progress"},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2}, paused: true, want: "it is paused: its pods stay as they are"},
		{kind: pod.KindDeployment, counts: workload.Counts{Replicas: 2, Updated: 2, Ready: 2, Available: 2}, settled: true},
		{kind: pod.KindStatefulSet, counts: workload.Counts{Replicas: 1, Updated: 1, Ready: 1}, want: "waiting for 1 pods to be ready"},
		{kind: pod.KindReplicaSet, counts: workload.Counts{Replicas: 3, Ready: 3, Available: 3}, want: "1 replicas are pending termination"},
		{kind: pod.KindJob},
	} {
		v := &resource.WorkloadInfo{Spec: &workload.Spec{Kind: tt.kind, Replicas: 2, Paused: tt.paused}, State: workload.State{Conditions: tt.conditions}}
		if got := rolloutStatus(v, &workload.Decision{Counts: tt.counts, Settled: tt.settled}); got != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.kind, tt.counts, got, tt.want)
		}
	}
}
