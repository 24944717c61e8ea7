package cli

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/pod"
)

func TestNarratorSaysWhyAContainerWaits(t *testing.T) {
	crash := waiting("app", "CrashLoopBackOff", "back-off 20s restarting failed container=app pod=web_default(2fcb69e1)")
	crash.LastState = terminated("app", 3, "Error", "").State
	crash.RestartCount = 2
	var said strings.Builder
	tell := rollout.Reporter{Out: &said, Pod: "web"}
	st := status(pod.Running, crash)
	tell.Status(&st)
	tell.Status(&st)
	want := "podrun: pod web: container app (restart 2) exited with code 3; waits: CrashLoopBackOff: back-off 20s\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// A message of several lines is shown as it was written, without its last line's end.
func TestNarratorShowsMessagesAsTheyAre(t *testing.T) {
	var said strings.Builder
	tell := rollout.Reporter{Out: &said, Pod: "web"}
	st := status(pod.Running, terminated("app", 3, "Error", "no disk\nmount\x1b it\n"))
	tell.Status(&st)
	want := "podrun: pod web: container app exited with code 3: no disk\n  mount\\u001b it\n"
	if said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}

// What was said when a container ended is not said in full again when the pod does.
func TestUpSaysAContainersMessageOnce(t *testing.T) {
	w := newWorld(t)
	bad := terminated("app", 3, "Error", "no disk")
	w.script = func(s *supervisor) {
		s.publish(status(pod.Running, bad, isRunning("log-shipper")))
	}
	p := w.begin("", "up", w.file(threeContainers))
	p.says("no disk")
	w.supervisor("default", "web").end(status(pod.Failed, bad, terminated("log-shipper", 0, "Completed", "")))
	check(t, p.wait(), 1, "", `podrun: pod web: container app exited with code 3: no disk
podrun: pod web failed: container app exited with code 3
hint: podrun logs web shows its output, podrun down web removes it
`)
}
