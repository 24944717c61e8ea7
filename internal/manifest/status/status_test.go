package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testmanifest"
)

// TestRender compares a whole Pod with its status as users see it.
func TestRender(t *testing.T) {
	moment := func(minutes int) time.Time { return testmanifest.Noon.Add(time.Duration(minutes) * time.Minute) }
	failed := &pod.Terminated{ExitCode: 137, Signal: 9, Reason: "OOMKilled", Message: "out of memory", StartedAt: moment(-5), FinishedAt: moment(-4), ContainerID: "podrun://b0"}
	st := &pod.Status{
		Phase: pod.Running, StartTime: moment(-12), Reason: "Why", Message: "because",
		Deleting: true, Deletion: &pod.Deletion{At: moment(1), GraceSeconds: 30},
		Conditions: []pod.Condition{
			{Type: "Initialized", Status: "True", LastTransition: moment(-10)},
			{Type: "Ready", Status: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [b]", LastTransition: moment(-4)},
		},
		InitContainers: []pod.ContainerStatus{
			{Name: "init", Ready: true, Image: "docker.io/library/i:latest", ImageID: "sha256:1", ContainerID: "podrun://i0",
				State: pod.State{Terminated: &pod.Terminated{Reason: "Completed", StartedAt: moment(-12), FinishedAt: moment(-11), ContainerID: "podrun://i0"}}},
			{Name: "side", Ready: true, Started: true, RestartCount: 1, State: pod.State{Running: &pod.RunningAt{StartedAt: moment(-10)}}},
		},
		Containers: []pod.ContainerStatus{
			{Name: "b", RestartCount: 3, User: &pod.User{UID: 1000, GID: 50, Groups: []int{50, 60000}}, State: pod.State{Waiting: &pod.Waiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}}, LastState: pod.State{Terminated: failed}},
		},
	}
	golden.Check(t, "testdata/rendered.yaml", manifesttest.YAML(t, status.Render(testmanifest.ThreePod(t).Pod, st)))
	st.Phase = pod.Failed
	if p := status.Render(testmanifest.ThreePod(t).Pod, st); p.DeletionTimestamp != nil {
		t.Errorf("a pod that has ended is being deleted at %v", p.DeletionTimestamp)
	}
}

func TestRenderWithoutStatus(t *testing.T) {
	p := testmanifest.ThreePod(t).Pod
	r := status.Render(p, nil)
	if r.Status.Phase != corev1.PodPending || len(r.Status.ContainerStatuses) != 2 || r.Status.StartTime != nil {
		t.Errorf("got %+v", r.Status)
	}
	if w := r.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "PodInitializing" {
		t.Errorf("waiting: %+v", w)
	}
	if p.Status.Phase != "" {
		t.Error("the pod was changed")
	}
	p.Spec.InitContainers = nil
	if w := status.Render(p, nil).Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" {
		t.Errorf("waiting, without init containers: %+v", w)
	}
}

// TestRenderMounts: a status reports of each mount whether it and all mounts below it are read-only.
func TestRenderMounts(t *testing.T) {
	p := load(t, podYAML(`{volumes: [{name: v}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /rw}, {name: v, mountPath: /ro, readOnly: true},
 {name: v, mountPath: /all, readOnly: true, recursiveReadOnly: Enabled}, {name: v, mountPath: /maybe, readOnly: true, recursiveReadOnly: IfPossible}]}]}`)).Pod
	for shallow, want := range map[bool]string{
		false: "/rw false <nil>, /ro true Disabled, /all true Enabled, /maybe true Enabled",
		true:  "/rw false <nil>, /ro true Disabled, /all true Disabled, /maybe true Disabled",
	} {
		var list []string
		for _, m := range status.Render(p, &pod.Status{ShallowReadOnly: shallow}).Status.ContainerStatuses[0].VolumeMounts {
			mode := "<nil>"
			if m.RecursiveReadOnly != nil {
				mode = string(*m.RecursiveReadOnly)
			}
			list = append(list, fmt.Sprint(m.MountPath, " ", m.ReadOnly, " ", mode))
		}
		if got := strings.Join(list, ", "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
