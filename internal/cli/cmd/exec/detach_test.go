package exec_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

func TestUpDetached(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(clitest.Status(pod.Pending, clitest.WaitingContainer("app", "ContainerCreating", "")))
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
	}
	file := h.File(clitest.OneContainer)
	clitest.CheckResult(t, h.Run("up", "-d", file), 0, "pod/web running\n", "")
	clitest.CheckResult(t, h.Run("up", "-d", file), 0, "pod/web unchanged\n", "")
	other := h.File(strings.Replace(clitest.OneContainer, "command: [sh]", "command: [sh, -c, x]", 1))
	clitest.CheckResult(t, h.Run("up", "-d", other), 1, "", "podrun: pod web is already running and cannot be changed in place to match its manifest: spec.containers[0].command\nhint: podrun up --replace stops it and starts the new one; podrun down web removes it\n")

	// A pod that has ended is replaced.
	uid := h.Supervisor("default", "web").Plan.UID
	h.Supervisor("default", "web").End(clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 1, "Error", "")))
	clitest.CheckResult(t, h.Run("up", "-d", other), 0, "pod/web running\n", "")
	if again := h.Supervisor("default", "web").Plan.UID; again == uid || len(again) != 36 {
		t.Errorf("the new pod has uid %q, the old one had %q", again, uid)
	}
}

func TestUpDetachedFails(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F one", "stderr F two \x1b[2J")
		s.End(clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 3, "Error", "")))
	}
	got := h.Run("up", "-d", h.File(clitest.OneContainer))
	want := `podrun: pod web failed: container app exited with code 3
  its last lines:
  one
  two \u001b[2J
hint: podrun logs web shows its output, podrun down web removes it
`
	if got.Code != 1 || got.Out != "" || !strings.HasSuffix(got.Err, want) {
		t.Errorf("%+v", got)
	}
}

// TestUpDetachedFailedStart checks that up -d does not report a container as running that was not created,
// whatever the phase.
func TestUpDetachedFailedStart(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		c := clitest.WaitingContainer("app", "CrashLoopBackOff", "back-off 10s")
		c.LastState = clitest.TerminatedContainer("app", 128, "CreateContainerError", "mount root file system: invalid argument").State
		s.Publish(clitest.Status(pod.Running, c))
	}
	got := h.Run("up", "-d", "--timeout", "300ms", h.File(clitest.OneContainer))
	if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "pod web is not running after 300ms") {
		t.Errorf("%+v", got)
	}
}

func TestUpDetachedWaitsOutBackOff(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		failing := clitest.Status(pod.Pending, clitest.WaitingContainer("app", "PodInitializing", ""))
		failing.InitContainers = []pod.ContainerStatus{clitest.WaitingContainer("prepare", "CrashLoopBackOff", "back-off 10s")}
		s.Publish(failing)
	}
	p := h.Begin("", "up", "-d", "--timeout", "300ms", h.File(clitest.ThreeContainers))
	got := p.Wait()
	want := `podrun: pod web: container prepare waits: CrashLoopBackOff: back-off 10s
podrun: pod web is not running after 300ms: it keeps running
hint: podrun events web and podrun logs web show why; podrun down web removes it
`
	clitest.CheckResult(t, got, 1, "", want)
	if !h.Dirs.Pod("default", "web").Alive() {
		t.Error("the pod was not left as it is")
	}
}

func TestUpDetachedInterrupted(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(clitest.Status(pod.Pending, clitest.WaitingContainer("app", "ImagePullBackOff", "slow")))
	}
	p := h.Begin("", "up", "-d", h.File(clitest.OneContainer))
	p.WaitOutput("ImagePullBackOff")
	p.Signals <- syscall.SIGINT
	clitest.CheckResult(t, p.Wait(), 130, "", "podrun: pod web: container app waits: ImagePullBackOff: slow\npodrun: pod web keeps running; podrun down web removes it\n")
}
