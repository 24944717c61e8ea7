package up_test

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// TestUpWaitsForTheEnd checks that up, apply and start run a pod again which another command stops.
func TestUpWaitsForTheEnd(t *testing.T) {
	for name, args := range map[string][]string{
		"up":      {"up", "-d", "FILE"},
		"replace": {"up", "-d", "--replace", "FILE"},
		"apply":   {"apply", "-f", "FILE"},
		"start":   {"start", "web"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			s := h.UpDetached(clitest.OneContainer, nil)
			ending := clitest.Status(pod.Running, clitest.RunningContainer("app"))
			ending.Deleting = true
			s.Publish(ending)
			h.Script = func(s *clitest.Supervisor) {
				s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
			}
			for i := range args {
				if args[i] == "FILE" {
					args[i] = h.File(clitest.OneContainer)
				}
			}
			p := h.Begin("", args...)
			p.WaitOutput("waiting for the end of pod web")
			last := clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 143, "Error", ""))
			last.Deleting = true
			s.End(last)
			if got := p.Wait(); got.Code != 0 || h.Supervisor("default", "web") == s {
				t.Errorf("the pod was not started again: %+v", got)
			}
		})
	}
}

// TestTimeoutWhileAPodEnds checks that --timeout limits the wait for the end of an old pod.
func TestTimeoutWhileAPodEnds(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	ending := clitest.Status(pod.Running, clitest.RunningContainer("app"))
	ending.Deleting = true
	s.Publish(ending)
	got := h.Run("up", "-d", "--timeout", "100ms", h.File(clitest.OneContainer)) // shorter than the delay of the message that it waits
	clitest.CheckResult(t, got, 1, "", "podrun: pod web is still being removed: timed out\n")
}
