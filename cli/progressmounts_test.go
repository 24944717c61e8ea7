package cli

import (
	"testing"
	"time"

	"github.com/podrun/podrun/pod"
)

// Who waits for a pod is told which of its volumes are not there, and why.
func TestUpSaysWhichVolumesAreNotThere(t *testing.T) {
	for _, how := range [][]string{{"up", "-d"}, {"up"}} {
		w := newWorld(t)
		next := make(chan bool)
		w.script = func(s *supervisor) {
			s.publish(status(pod.Pending, waiting("app", "ContainerCreating", "")))
			var log pod.EventLog
			for _, text := range []string{`configmap "later" not found`, `configmap "later" not found`, `secret "key" not found`} {
				log.Add(pod.Event{Type: pod.Warning, Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "c" : ` + text, Last: time.Now()})
				if err := s.pod.WriteEvents(&log); err != nil {
					t.Error(err)
				}
			}
			<-next
			s.end(status(pod.Succeeded, terminated("app", 0, "Completed", "")))
		}
		p := w.begin("", append(how, w.file(oneContainer))...)
		p.says(`secret "key" not found`)
		close(next)
		got := p.wait()
		want := `podrun: pod web: a volume is not there: FailedMount: MountVolume.SetUp failed for volume "c" : configmap "later" not found
podrun: pod web: a volume is not there: FailedMount: MountVolume.SetUp failed for volume "c" : secret "key" not found
`
		if got.code != 0 || got.err != want {
			t.Errorf("%v: code %d, said %s", how, got.code, got.err)
		}
	}
}

// What a running pod has got over is not told again.
func TestUpOfARunningPodTellsNoOldTrouble(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		var log pod.EventLog
		log.Add(pod.Event{Type: pod.Warning, Reason: "FailedMount", Message: "old", Last: time.Now()})
		if err := s.pod.WriteEvents(&log); err != nil {
			t.Error(err)
		}
		s.publish(status(pod.Running, isRunning("app")))
	}
	file := w.file(oneContainer)
	if got := w.run("up", "-d", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	check(t, w.run("up", "-d", file), 0, "pod/web unchanged\n", "")
}
