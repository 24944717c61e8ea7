package clitest

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// RunningPod has a pod of resizable and gives its file.
func RunningPod(t *testing.T) (*World, string) {
	w := NewWorld(t)
	w.Script = func(s *Supervisor) { s.Publish(Status(pod.Running, RunningContainer("app"))) }
	CheckResult(t, w.Run("up", "-d", w.File(Resizable)), 0, "pod/web running\n", "")
	return w, w.File(Resizable)
}

const Resizable = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: example, resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}
`

// Status is a status with containers.
func Status(phase pod.Phase, containers ...pod.ContainerStatus) pod.Status {
	return pod.Status{Phase: phase, Containers: containers}
}

// RunningContainer is a container that runs and is ready.
func RunningContainer(name string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Running: &pod.RunningAt{}}, Ready: true, Started: true}
}

// TerminatedContainer is a container that has ended.
func TerminatedContainer(name string, code int, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Terminated: &pod.Terminated{ExitCode: code, Reason: reason, Message: message, StartedAt: startOf(reason)}}}
}

// startOf is the time at which a container was started that has ended so.
func startOf(reason string) time.Time {
	if reason == "StartError" || reason == "CreateContainerError" {
		return time.Time{} // never
	}
	return time.Unix(1e9, 0)
}

// WaitingContainer is a container that waits.
func WaitingContainer(name, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Waiting: &pod.Waiting{Reason: reason, Message: message}}}
}

const OneContainer = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 7
  containers:
  - {name: app, image: "busybox:1", command: [sh]}
`

const ThreeContainers = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  initContainers:
  - {name: prepare, image: "busybox:1"}
  containers:
  - {name: app, image: "busybox:1"}
  - {name: log-shipper, image: "busybox:1"}
`

// NoNetworkError is what a pull says on a machine that has none yet.
func NoNetworkError() error {
	return &image.Error{Reason: image.ErrImagePull, Transient: true, Err: report.New(report.Failure, "", "%w", &net.OpError{Op: "dial", Err: syscall.ENETUNREACH})}
}
