package controller

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/workload"
)

// TestPodsInRemovalAreNotSuperfluous checks that pods which the controller is removing since a reboot do not
// count as running ones.
func TestPodsInRemovalAreNotSuperfluous(t *testing.T) {
	const version = "a"
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	decide := func(c *Controller, names ...string) workload.Decision {
		v := &resource.WorkloadInfo{
			Spec:       &workload.Spec{Kind: pod.KindDeployment, Name: "w", Revision: version, Replicas: 2, Strategy: workload.Rolling, MaxSurge: 1},
			State:      workload.State{Revisions: []workload.Revision{{Name: version, Number: 1, Replicas: 2}}},
			StoredPods: map[string]store.Pod{},
		}
		for i, name := range names {
			v.Pods = append(v.Pods, workload.Pod{
				Name: name, UID: name, Revision: version, Index: -1, Created: started.Add(time.Duration(i) * time.Second), Alive: true, Phase: pod.Running,
			})
			v.StoredPods[name] = store.Pod{Namespace: "default", Name: name}
		}
		c.markRemoving(v)
		return v.Decide(started.Add(time.Minute))
	}
	none := &Controller{}
	if d := decide(none, "old-1", "old-2", "new-1", "new-2"); len(d.Remove) != 2 {
		t.Errorf("of four that live these go: %v", d.Remove)
	}
	cut := &Controller{removing: map[store.Pod]bool{
		{Namespace: "default", Name: "old-1"}: true, {Namespace: "default", Name: "old-2"}: true,
	}}
	if d := decide(cut, "old-1", "old-2"); len(d.Make) != 2 || len(d.Remove) != 0 {
		t.Errorf("while the pods of before go: %d to make, %v to remove", len(d.Make), d.Remove)
	}
	if d := decide(cut, "old-1", "old-2", "new-1", "new-2"); len(d.Make)+len(d.Remove) != 0 {
		t.Errorf("once others are there: %d to make, %v to remove", len(d.Make), d.Remove)
	}
}
