package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/nodetest"
)

// TestCounts: the start of a pod is counted once, with its duration, and each end of a container once.
func TestCounts(t *testing.T) {
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
	}
	runs := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	a := &Agent{}
	was := &corev1.PodStatus{}
	for _, is := range []*corev1.PodStatus{
		{Phase: corev1.PodPending},
		{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{ended("init", 0)}},
		{Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{ended("init", 0)}, ContainerStatuses: []corev1.ContainerStatus{runs}},
		{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ended("main", 3)}},
		{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{runs}},
		{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ended("main", 3)}},
		{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 3)}},
	} {
		a.counter.count(1500*time.Millisecond, was, is)
		was = is
	}
	got := a.Counts()
	if want := "map[{container 3 Error}:2 {init_container 0 Error}:1]"; fmt.Sprint(got.Terminations) != want {
		t.Errorf("terminations %v", got.Terminations)
	}
	if h := got.Starts; h.Count != 1 || h.Sum != 1500*time.Millisecond || h.Buckets[2] != 1 {
		t.Errorf("starts %+v", h)
	}
}

// TestAgentCounts: an agent counts what happens to its pods.
func TestAgentCounts(t *testing.T) {
	b := newBed(t)
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	if n := b.agent.Counts().Starts.Count; n != 1 {
		t.Errorf("%d starts", n)
	}
}
