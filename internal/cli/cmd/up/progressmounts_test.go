package up_test

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// TestUpPrintsMissingVolumes checks that up prints the missing volumes of a waiting pod and the reason.
func TestUpPrintsMissingVolumes(t *testing.T) {
	for _, how := range [][]string{{"up", "-d"}, {"up"}} {
		h := clitest.NewHost(t)
		next := make(chan bool)
		h.Script = func(s *clitest.Supervisor) {
			s.Publish(clitest.Status(pod.Pending, clitest.WaitingContainer("app", "ContainerCreating", "")))
			var log pod.EventLog
			for _, text := range []string{`configmap "later" not found`, `configmap "later" not found`, `secret "key" not found`} {
				log.Add(pod.Event{Type: pod.Warning, Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "c" : ` + text, Last: time.Now()})
				if err := s.Pod.WriteEvents(&log); err != nil {
					t.Error(err)
				}
			}
			<-next
			s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
		}
		p := h.Begin("", append(how, h.File(clitest.OneContainer))...)
		p.WaitOutput(`secret "key" not found`)
		close(next)
		got := p.Wait()
		want := `podrun: pod web: a volume is not available: FailedMount: MountVolume.SetUp failed for volume "c" : configmap "later" not found
podrun: pod web: a volume is not available: FailedMount: MountVolume.SetUp failed for volume "c" : secret "key" not found
`
		if got.Code != 0 || got.Err != want {
			t.Errorf("%v: code %d, said %s", how, got.Code, got.Err)
		}
	}
}

// TestUpOmitsResolvedMountFailures checks that up of a running pod does not print mount failures that are
// over.
func TestUpOmitsResolvedMountFailures(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		var log pod.EventLog
		log.Add(pod.Event{Type: pod.Warning, Reason: "FailedMount", Message: "old", Last: time.Now()})
		if err := s.Pod.WriteEvents(&log); err != nil {
			t.Error(err)
		}
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
	}
	file := h.File(clitest.OneContainer)
	if got := h.Run("up", "-d", file); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	clitest.CheckResult(t, h.Run("up", "-d", file), 0, "pod/web unchanged\n", "")
}
