package cli

import (
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/pod"
)

// Who waits for a pod is told what for when it takes a while, and whenever that is something
// else, once each.
func TestUpSaysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.still = time.Millisecond
	lacks := func(kind, why string) pod.Status {
		st := status(pod.Running, isRunning("app"))
		st.Conditions = []pod.Condition{{Type: "Initialized", Status: "True"}, {Type: "Ready", Status: "False", Message: why}}
		if kind == "Initialized" {
			st.Conditions[0] = pod.Condition{Type: kind, Status: "False", Message: why}
		}
		return st
	}
	next := make(chan bool)
	w.script = func(s *supervisor) {
		s.publish(lacks("Initialized", "containers with incomplete status: [prepare]"))
		<-next
		var log pod.EventLog
		for _, name := range []string{"app", "other"} {
			log.Add(pod.Event{Type: pod.Warning, Reason: "Unhealthy", Container: name, Message: "Readiness probe failed:\n", Last: time.Now()})
		}
		if err := s.pod.WriteEvents(&log); err != nil {
			t.Error(err)
		}
		s.publish(lacks("Ready", "containers with unready status: [app]"))
		<-next
		s.publish(lacks("Ready", `the status of pod readiness gate "x/y" is not "True", but False`))
	}
	p := w.begin("", "up", "-d", "--wait", w.file(oneContainer))
	for _, want := range []string{"prepare]", "app]"} {
		p.says(want)
		next <- true
	}
	p.says("gate")
	p.signals <- syscall.SIGINT
	check(t, p.wait(), 130, "", `podrun: pod web: it is not ready yet: containers with incomplete status: [prepare]; Ctrl-C leaves it as it is, --timeout gives up
podrun: pod web: it is not ready yet: containers with unready status: [app] (container app: Readiness probe failed)
podrun: pod web: it is not ready yet: the status of pod readiness gate "x/y" is not "True", but False
podrun: pod web is left as it is; podrun down web removes it
`)
}
