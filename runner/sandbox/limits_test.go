package sandbox

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestPodLimits: without a limit of its own a pod has room for the default number of processes, whatever its containers'
// limits are.
func TestPodLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		in   pod.Resources
		want int64
	}{
		"no limit":              {pod.Resources{}, 0}, // package cgroups sets the default
		"containers' limits":    {pod.Resources{Pids: 20}, 2048},
		"containers with many":  {pod.Resources{Pids: 5000}, 5000},
		"the pod's own limit":   {pod.Resources{Pids: 200, PodPids: true}, 200},
		"more than the default": {pod.Resources{Pids: 9000, PodPids: true}, 9000},
	} {
		if got := PodLimits(tt.in).Pids; got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
