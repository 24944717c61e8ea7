package clitest

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// RunningPod returns a host with a running pod of Resizable, and the path of that manifest.
func RunningPod(t *testing.T) (*Host, string) {
	h := NewHost(t)
	h.Script = func(s *Supervisor) { s.Publish(Status(pod.Running, RunningContainer("app"))) }
	CheckResult(t, h.Run("up", "-d", h.File(Resizable)), 0, "pod/web running\n", "")
	return h, h.File(Resizable)
}

// Resizable is a manifest of a pod whose resources up can change.
const Resizable = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: example, resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}
`

// Status returns a status with containers.
func Status(phase pod.Phase, containers ...pod.ContainerStatus) pod.Status {
	return pod.Status{Phase: phase, Containers: containers}
}

// RunningContainer returns the status of a container that runs and is ready.
func RunningContainer(name string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Running: &pod.RunningAt{}}, Ready: true, Started: true}
}

// TerminatedContainer returns the status of a container that has ended.
func TerminatedContainer(name string, code int, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Terminated: &pod.Terminated{ExitCode: code, Reason: reason, Message: message, StartedAt: startOf(reason)}}}
}

// startOf returns the start time of a container that has ended for a reason.
func startOf(reason string) time.Time {
	if reason == "StartError" || reason == "CreateContainerError" {
		return time.Time{} // never
	}
	return time.Unix(1e9, 0)
}

// WaitingContainer returns the status of a container that waits.
func WaitingContainer(name, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Waiting: &pod.Waiting{Reason: reason, Message: message}}}
}

// OneContainer is a manifest of a pod with one container.
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

// ThreeContainers is a manifest of a pod with an init container and two app containers.
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

// NoNetworkError returns the error of a pull on a host without a network.
func NoNetworkError() error {
	return &image.Error{Reason: image.ErrImagePull, Transient: true, Err: report.New(report.Failure, "", "%w", &net.OpError{Op: "dial", Err: syscall.ENETUNREACH})}
}
