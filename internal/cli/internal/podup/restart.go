package podup

import (
	"context"
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Restart restarts containers of a running pod by changing their revision in the Plan: the named ones, or all that run as
// long as the pod. grace is their grace period in seconds; nil: the pod's. It does not wait until they run again.
func Restart(ctx context.Context, place store.Pod, only []string, grace *int64) (*Target, error) {
	plan, err := place.Plan()
	if err != nil {
		return nil, err
	}
	text, err := place.Manifest()
	if err != nil {
		return nil, err
	}
	t := &Target{Pod: place, Plan: plan}
	if err := bumpRevisions(plan, only, grace); err != nil {
		return nil, err
	}
	t.RestartCounts = t.Restarting()
	if err := t.Apply(ctx, text); err != nil {
		return nil, fmt.Errorf("cannot restart pod %s: %w", place.Name, err)
	}
	return t, nil
}

// bumpRevisions increments the revision of containers to restart: the named ones, or all that run as long
// as the pod.
func bumpRevisions(plan *pod.Plan, only []string, grace *int64) error {
	known := map[string]bool{}
	for _, list := range []struct {
		containers []pod.Container
		inits      bool
	}{{plan.InitContainers, true}, {plan.Containers, false}} {
		for i := range list.containers {
			c := &list.containers[i]
			if list.inits && !c.Sidecar {
				continue
			}
			known[c.Name] = true
			if len(only) == 0 || slices.Contains(only, c.Name) {
				c.Revision, c.RestartRequested, c.RestartGraceSeconds = c.Revision+1, true, grace
			}
		}
	}
	for _, name := range only {
		if !known[name] {
			return report.New(report.Usage, "podrun describe "+plan.Name+" shows its containers", "pod %s has no app container or sidecar %q", plan.Name, name)
		}
	}
	return nil
}
