package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

func TestPendingConditions(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	plan := &pod.Plan{InitContainers: []pod.Container{{Name: "setup"}, {Name: "proxy", Sidecar: true}}, Containers: []pod.Container{{Name: "web"}}}
	unready := pod.Condition{Status: isFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [proxy web]", LastTransition: now}
	want := []pod.Condition{
		{Type: readyToStart, Status: isFalse, Reason: "PodSandboxNotReady", Message: "no pod sandbox exists", LastTransition: now},
		{Type: initialized, Status: isFalse, Reason: "ContainersNotInitialized", Message: "containers with incomplete status: [setup proxy]", LastTransition: now},
		named(podReady, unready),
		named(containersReady, unready),
		{Type: podScheduled, Status: isTrue, LastTransition: now},
	}
	if diff := cmp.Diff(want, PendingConditions(plan, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
