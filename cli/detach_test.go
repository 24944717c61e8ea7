package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/pod"
)

func TestUpDetached(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.publish(status(pod.Pending, waiting("app", "ContainerCreating", "")))
		s.publish(status(pod.Running, isRunning("app")))
	}
	file := w.file(oneContainer)
	check(t, w.run("up", "-d", file), 0, "pod/web running\n", "")
	check(t, w.run("up", "-d", file), 0, "pod/web unchanged\n", "")
	other := w.file(strings.Replace(oneContainer, "command: [sh]", "command: [sh, -c, x]", 1))
	check(t, w.run("up", "-d", other), 1, "", "podrun: pod web is running already, made from a manifest that differs in what cannot be changed while it runs: spec.containers[0].command\nhint: podrun up --replace stops it and starts the new one; podrun down web removes it\n")

	// A pod that has ended is replaced.
	uid := w.supervisor("default", "web").plan.UID
	w.supervisor("default", "web").end(status(pod.Failed, terminated("app", 1, "Error", "")))
	check(t, w.run("up", "-d", other), 0, "pod/web running\n", "")
	if again := w.supervisor("default", "web").plan.UID; again == uid || len(again) != 36 {
		t.Errorf("the new pod has uid %q, the old one had %q", again, uid)
	}
}

func TestUpDetachedFails(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.log("app", 0, "stdout F one", "stderr F two \x1b[2J")
		s.end(status(pod.Failed, terminated("app", 3, "Error", "")))
	}
	got := w.run("up", "-d", w.file(oneContainer))
	want := `podrun: pod web failed: container app exited with code 3
  its last lines:
  one
  two \u001b[2J
hint: podrun logs web shows its output, podrun down web removes it
`
	if got.code != 1 || got.out != "" || !strings.HasSuffix(got.err, want) {
		t.Errorf("%+v", got)
	}
}

// A container that could not be made has not been running, however the phase is
// called.
func TestUpDetachedDoesNotCallAFailedStartRunning(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		c := waiting("app", "CrashLoopBackOff", "back-off 10s")
		c.LastState = terminated("app", 128, "CreateContainerError", "mount root file system: invalid argument").State
		s.publish(status(pod.Running, c))
	}
	got := w.run("up", "-d", "--timeout", "300ms", w.file(oneContainer))
	if got.code != 1 || got.out != "" || !strings.Contains(got.err, "pod web is not running after 300ms") {
		t.Errorf("%+v", got)
	}
}

func TestUpDetachedWaitsOutBackOff(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		failing := status(pod.Pending, waiting("app", "PodInitializing", ""))
		failing.InitContainers = []pod.ContainerStatus{waiting("prepare", "CrashLoopBackOff", "back-off 10s")}
		s.publish(failing)
	}
	p := w.begin("", "up", "-d", "--timeout", "300ms", w.file(threeContainers))
	got := p.wait()
	want := `podrun: pod web: container prepare waits: CrashLoopBackOff: back-off 10s
podrun: pod web is not running after 300ms: it is left as it is
hint: podrun events web and podrun logs web show why; podrun down web removes it
`
	check(t, got, 1, "", want)
	if !w.dirs.Pod("default", "web").Alive() {
		t.Error("the pod was not left as it is")
	}
}

func TestUpDetachedInterrupted(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) { s.publish(status(pod.Pending, waiting("app", "ImagePullBackOff", "slow"))) }
	p := w.begin("", "up", "-d", w.file(oneContainer))
	p.says("ImagePullBackOff")
	p.signals <- syscall.SIGINT
	check(t, p.wait(), 130, "", "podrun: pod web: container app waits: ImagePullBackOff: slow\npodrun: pod web is left as it is; podrun down web removes it\n")
}
