package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/pod"
)

func TestProgressShowsWhyAContainerWaits(t *testing.T) {
	crash := clitest.WaitingContainer("app", "CrashLoopBackOff", "back-off 20s restarting failed container=app pod=web_default(2fcb69e1)")
	crash.LastState = clitest.TerminatedContainer("app", 3, "Error", "").State
	crash.RestartCount = 2
	var said strings.Builder
	reporter := follow.Reporter{Out: &said, Pod: "web"}
	st := clitest.Status(pod.Running, crash)
	reporter.Status(&st)
	reporter.Status(&st)
	want := "podrun: pod web: container app (restart 2) exited with code 3; waits: CrashLoopBackOff: back-off 20s\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// TestProgressJoinsLines checks that a message of several lines is printed in one, and of a long one the last line.
func TestProgressJoinsLines(t *testing.T) {
	var said strings.Builder
	reporter := follow.Reporter{Out: &said, Pod: "web"}
	st := clitest.Status(pod.Running, clitest.TerminatedContainer("app", 3, "Error", "no disk\nmount\x1b it\n"))
	reporter.Status(&st)
	want := "podrun: pod web: container app exited with code 3: no disk; mount\\u001b it\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	said.Reset()
	st = clitest.Status(pod.Running, clitest.TerminatedContainer("app", 4, "Error", strings.Repeat("a line of the log\n", 100)+"the cause"))
	reporter.Status(&st)
	want = "podrun: pod web: container app exited with code 4: the cause (podrun logs and podrun describe show more)\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// TestUpPrintsContainerMessageOnce checks that the message of an ended container is not repeated when the pod
// ends.
func TestUpPrintsContainerMessageOnce(t *testing.T) {
	h := clitest.NewHost(t)
	bad := clitest.TerminatedContainer("app", 3, "Error", "no disk")
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(clitest.Status(pod.Running, bad, clitest.RunningContainer("log-shipper")))
	}
	p := h.Begin("", "up", h.File(clitest.ThreeContainers))
	p.WaitOutput("no disk")
	h.Supervisor("default", "web").End(clitest.Status(pod.Failed, bad, clitest.TerminatedContainer("log-shipper", 0, "Completed", "")))
	clitest.CheckResult(t, p.Wait(), 1, "", `podrun: pod web: container app exited with code 3: no disk
podrun: pod web failed: container app exited with code 3
hint: podrun logs web shows its output, podrun down web removes it
`)
}
