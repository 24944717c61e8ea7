package runner

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// A pod whose container ran and could not be started again removes itself like any other: no command waits for
// its start any more.
func TestNeverStarted(t *testing.T) {
	ended := func(reason string, restarts int) *pod.Status {
		c := pod.ContainerStatus{Name: "a", RestartCount: restarts}
		c.State.Terminated = &pod.Terminated{Reason: reason, ExitCode: 1}
		return &pod.Status{Containers: []pod.ContainerStatus{c}}
	}
	for _, test := range []struct {
		name string
		st   *pod.Status
		want bool
	}{
		{"its first start failed", ended("StartError", 0), true},
		{"it ran", ended("Error", 0), false},
		{"it ran, and its restart failed", ended("StartError", 1), false},
		{"it was never due", &pod.Status{Containers: []pod.ContainerStatus{{Name: "a"}}}, false},
	} {
		if got := neverStarted(test.st); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
