package follow

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestProblemSuffix checks that problemSuffix names the failed container and its exit code.
func TestProblemSuffix(t *testing.T) {
	ended := &pod.Terminated{ExitCode: 3, Reason: "Error"}
	for want, c := range map[string]pod.ContainerStatus{
		"":                                     {Name: "app", Ready: true},
		": container app exited with code 3":   {Name: "app", State: pod.State{Terminated: ended}},
		": container again exited with code 3": {Name: "again", RestartCount: 1, LastState: pod.State{Terminated: ended}},
	} {
		if got := problemSuffix(&pod.Status{Containers: []pod.ContainerStatus{c}}); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
