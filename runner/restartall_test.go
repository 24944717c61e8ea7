package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A container whose rule says so restarts all of the pod: the others are killed at once,
// without their grace, and everything begins anew in the same sandbox.
func TestRestartAllContainers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	i, s := shell(l, "i", "echo run >> /v/runs"), shell(l, "s", "trap '' TERM; exec sleep 1000")
	a, b := shell(l, "a", "[ $(grep -c . /v/runs) = 2 ] && exec sleep 1000; exit 42"), shell(l, "b", "trap '' TERM; exec sleep 1000")
	i.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	a.Mounts, s.Sidecar = i.Mounts, true
	a.RestartPolicy = pod.RestartNever
	a.RestartRules = []pod.RestartRule{{ExitCodes: []int{42}, All: true}}
	plan := newPlan([]pod.Container{i, s}, []pod.Container{a, b})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	restarting := false
	st := p.until("running again", func(st pod.Status) bool {
		for _, c := range st.Conditions {
			restarting = restarting || c.Type == "AllContainersRestarting" && c.Status == "True"
		}
		return st.Containers[0].RestartCount == 1 && allRunning(st.Containers)
	})
	if !restarting {
		t.Error("no status says that all containers are being restarted")
	}
	for _, c := range append(st.InitContainers, st.Containers...) {
		if c.RestartCount != 1 {
			t.Errorf("container %s was restarted %d times", c.Name, c.RestartCount)
		}
	}
	if end := st.Containers[1].LastState.Terminated; end == nil || end.Reason != "RestartingAllContainers" || end.ExitCode != 137 {
		t.Errorf("the container that was killed has ended as %+v", end)
	}
	if end := st.Containers[0].LastState.Terminated; end == nil || end.ExitCode != 42 {
		t.Errorf("the container that was the cause has ended as %+v", end)
	}
	if text, err := os.ReadFile(filepath.Join(p.place.VolumesDir(), "v", "runs")); err != nil || string(text) != "run\nrun\n" {
		t.Errorf("the init container has run %q: %v", text, err)
	}
}
