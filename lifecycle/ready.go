package lifecycle

import "github.com/podrun/podrun/pod"

// up says whether a container is shown as running: its process runs, and its
// postStart hook has succeeded. Until then the kubelet shows it as being created.
func up(planned *pod.Container, c *Container) bool {
	return c.State == RunRunning && (planned.PostStart == nil || c.PostStart.Outcome == Success)
}

// started says whether a container counts as started: it is up, and its startup
// probe, if it has one, has succeeded (kubelet: isContainerStarted in
// pkg/kubelet/prober).
func started(planned *pod.Container, c *Container) bool {
	return up(planned, c) && (planned.Startup == nil || c.Startup.Result == Success)
}

// ready says whether a container counts as ready. An init container is when it has
// succeeded; any other when it is started and its readiness probe, if it has one,
// says so.
func ready(planned *pod.Container, r role, c *Container) bool {
	if r == roleInit {
		return passed(planned, r, c)
	}
	return started(planned, c) && (planned.Readiness == nil || c.Readiness.Result == Success)
}
