package unit

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func TestActiveWhen(t *testing.T) {
	started := pod.ContainerStatus{Name: "app", Started: true, State: pod.State{Running: &pod.RunningAt{}}}
	st := &pod.Status{Phase: pod.Running, Containers: []pod.ContainerStatus{started}}
	if !ActiveRunning.reached(st) || ActiveReady.reached(st) {
		t.Errorf("a pod that runs and is not ready: running %v, ready %v", ActiveRunning.reached(st), ActiveReady.reached(st))
	}
	if ActiveWhen("healthy").Known() {
		t.Error("healthy is known")
	}
}
