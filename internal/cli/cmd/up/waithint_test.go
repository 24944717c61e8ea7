package up_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// TestUpPrintsWaitHint checks that a long wait of up prints its reason, and each new reason once.
func TestUpPrintsWaitHint(t *testing.T) {
	h := clitest.NewHost(t)
	h.WaitHintAfter = time.Millisecond
	lacks := func(kind, reason string) pod.Status {
		st := clitest.Status(pod.Running, clitest.RunningContainer("app"))
		st.Conditions = []pod.Condition{{Type: "Initialized", Status: "True"}, {Type: "Ready", Status: "False", Message: reason}}
		if kind == "Initialized" {
			st.Conditions[0] = pod.Condition{Type: kind, Status: "False", Message: reason}
		}
		return st
	}
	next := make(chan bool)
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(lacks("Initialized", "containers with incomplete status: [prepare]"))
		<-next
		var log pod.EventLog
		for _, name := range []string{"app", "other"} {
			log.Add(pod.Event{Type: pod.Warning, Reason: "Unhealthy", Container: name, Message: "Readiness probe failed:\n", Last: time.Now()})
		}
		if err := s.Pod.WriteEvents(&log); err != nil {
			t.Error(err)
		}
		s.Publish(lacks("Ready", "containers with unready status: [app]"))
		<-next
		s.Publish(lacks("Ready", `the status of pod readiness gate "x/y" is not "True", but False`))
	}
	p := h.Begin("", "up", "-d", "--wait", h.File(clitest.OneContainer))
	for _, want := range []string{"prepare]", "app]"} {
		p.WaitOutput(want)
		next <- true
	}
	p.WaitOutput("gate")
	p.Signals <- syscall.SIGINT
	clitest.CheckResult(t, p.Wait(), 130, "", `podrun: pod web: it is not ready yet: containers with incomplete status: [prepare]; Ctrl-C leaves it unchanged, --timeout gives up
podrun: pod web: it is not ready yet: containers with unready status: [app] (container app: Readiness probe failed)
podrun: pod web: it is not ready yet: the status of pod readiness gate "x/y" is not "True", but False
podrun: pod web keeps running; podrun down web removes it
`)
}
