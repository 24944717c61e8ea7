package podaction_test

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestStopWhileAnotherCommandStarts checks that stop does not wait for a pod that another command starts again.
func TestStopWhileAnotherCommandStarts(t *testing.T) {
	for name, next := range map[string]func(*clitest.Supervisor){
		"it starts":     func(s *clitest.Supervisor) { s.ClearRecord() },
		"it runs again": func(s *clitest.Supervisor) { s.Record(20) },
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			s := h.UpDetached(clitest.OneContainer, nil)
			s.Record(10)
			go func() {
				<-s.Stops
				s.Publish(stopped())
				next(s)
				s.KillAndKeepLock()
			}()
			clitest.CheckResult(t, h.Run("stop", "web"), 0, "pod/web stopped\n", "")
		})
	}
}

// TestDownWhileAnotherPodComes checks that down neither waits for another pod of that name, nor removes it.
func TestDownWhileAnotherPodComes(t *testing.T) {
	for name, next := range map[string]func(*clitest.Supervisor){
		"it starts": func(*clitest.Supervisor) {},
		"it runs":   func(s *clitest.Supervisor) { s.Record(20) },
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			s := h.UpDetached(clitest.OneContainer, nil)
			s.Record(10)
			go func() {
				<-s.Stops
				if err := s.Pod.Remove(); err != nil {
					t.Error(err)
				}
				s.Relock()
				next(s)
				s.KillAndKeepLock()
			}()
			clitest.CheckResult(t, h.Run("down", "web"), 0, "pod/web deleted\n", "")
			if !s.Pod.HasRemains() {
				t.Error("the other pod was removed")
			}
		})
	}
}
