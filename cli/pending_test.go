package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/pod"
)

// unknownManifest is what a registry answers that does not have the image.
func unknownManifest() error {
	return &image.Error{Reason: image.ErrImagePull, Err: errors.New("manifest unknown")}
}

// waitsHere is a world in which a pod waits for its image, with an hour between attempts.
func waitsHere(t *testing.T, err error, words ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.imageErr = err
	w.script = func(s *supervisor) { s.publish(status(pod.Running, isRunning("app"))) }
	w.run(append(words, w.file(oneContainer))...)
	eventually(t, "the pod waits", func() bool {
		st, err := w.dirs.Pod("default", "web").Status()
		return err == nil && st.Awaits != nil && len(st.Containers) == 1 && st.Containers[0].State.Waiting != nil && st.Containers[0].State.Waiting.Reason != "ContainerCreating"
	})
	return w
}

func (w *world) come() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.imageErr = nil
}

// While its image is missing a pod is there, and all verbs take it for one.
func TestPendingPodIsThere(t *testing.T) {
	w := waitsHere(t, unknownManifest(), "apply")
	for _, c := range []struct{ command, want string }{
		{"get pods", "Err"}, {"ps", "0/1"}, {"describe web", "ErrImagePull"}, {"events web", "Failed to pull image \"busybox:1\": manifest unknown"},
		{"get web -o yaml", "phase: Pending"}, {"get web -o yaml", "reason: PodSandboxNotReady"}, {"events web", "Pulling image"},
	} {
		if got := w.run(strings.Fields(c.command)...); got.code != 0 || !strings.Contains(got.out, c.want) {
			t.Errorf("%s lacks %q: %+v", c.command, c.want, got)
		}
	}
	if got := w.run("logs", "web"); got.code != 1 || !strings.Contains(got.err, "waiting to start") {
		t.Errorf("%+v", got)
	}
	if got := w.run("exec", "web", "--", "true"); got.code == 0 || !strings.Contains(got.err, "pod web waits for its images") {
		t.Errorf("%+v", got)
	}
	check(t, w.run("wait", "--for=phase=Pending", "web"), 0, "pod/web condition met\n", "")
	check(t, w.run("down", "web"), 0, "pod/web deleted\n", "")
	if w.dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod is left")
	}
}

// The same manifest again has the images tried at once, and the pod runs when they have come.
func TestPendingPodStarts(t *testing.T) {
	w := waitsHere(t, unknownManifest(), "up", "-d")
	w.come()
	check(t, w.run("up", "-d", w.file(oneContainer)), 0, "pod/web running\n", "")
	check(t, w.run("up", "-d", w.file(oneContainer)), 0, "pod/web unchanged\n", "")
	if plan, err := w.dirs.Pod("default", "web").Plan(); err != nil || plan.Awaits || plan.Containers[0].ImageID == "" {
		t.Errorf("%+v, %v", plan, err)
	}
}

// Another manifest takes the place of one of which nothing was started.
func TestPendingPodIsReplaced(t *testing.T) {
	w := waitsHere(t, unknownManifest(), "apply")
	before, err := w.dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	w.come()
	got := w.run("up", "-d", w.file(strings.Replace(oneContainer, "busybox:1", "busybox:2", 1)))
	if got.code != 0 || got.out != "pod/web running\n" {
		t.Fatalf("%+v", got)
	}
	after, err := w.dirs.Pod("default", "web").Plan()
	if err != nil || after.UID == before.UID || after.Containers[0].Image != "busybox:2" {
		t.Errorf("%+v, %v", after, err)
	}
}

// With --fail-fast the first attempt that fails is an error, else only one that cannot pass; the
// pod stays.
func TestUpFailFast(t *testing.T) {
	for _, c := range []struct {
		err   error
		words []string
	}{
		{noNetwork(), []string{"up", "-d", "--fail-fast"}},
		{unknownManifest(), []string{"up", "-d"}},
	} {
		w := newWorld(t)
		w.imageErr = c.err
		got := w.run(append(c.words, w.file(oneContainer))...)
		if got.code != 1 || !strings.Contains(got.err, "cannot use image busybox:1") || !strings.Contains(got.err, "pod web goes on waiting") {
			t.Errorf("%v: %+v", c.words, got)
		}
		if st, err := w.dirs.Pod("default", "web").Status(); err != nil || st.Phase != pod.Pending {
			t.Errorf("%v: %+v, %v", c.words, st, err)
		}
	}
	w := newWorld(t)
	check(t, w.run("up", "--fail-fast", w.file(oneContainer)), 2, "", "podrun: --fail-fast is for -d: in the foreground, up ends with the pods\nhint: podrun up --help\n")
}

// An image that is never to be pulled is waited for, too.
func TestNeverPulledIsWaitedFor(t *testing.T) {
	w := waitsHere(t, &image.Error{Reason: image.ErrImageNeverPull, Err: errors.New("not present")}, "up", "-d")
	if got := w.run("describe", "web"); !strings.Contains(got.out, "ErrImageNeverPull") || !strings.Contains(got.out, `Container image "busybox:1" is not present with pull policy of Never`) {
		t.Errorf("%+v", got)
	}
	w.come()
	check(t, w.run("up", "-d", w.file(oneContainer)), 0, "pod/web running\n", "")
}

// A foreground whose image cannot come leaves nothing.
func TestForegroundLeavesNoPendingPod(t *testing.T) {
	w := newWorld(t)
	w.imageErr = unknownManifest()
	if got := w.run("up", w.file(oneContainer)); got.code != 1 || !strings.Contains(got.err, "manifest unknown") {
		t.Errorf("%+v", got)
	}
	if w.dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod is left")
	}
}

// What ends a pending pod without removing it leaves its record, and up makes it anew.
func TestPendingPodIsStopped(t *testing.T) {
	w := waitsHere(t, noNetwork(), "apply")
	check(t, w.run("stop", "web"), 0, "pod/web stopped\n", "")
	if st, err := w.dirs.Pod("default", "web").Status(); err != nil || st.Phase != pod.Failed || st.Awaits != nil {
		t.Fatalf("%+v, %v", st, err)
	}
	w.come()
	check(t, w.run("up", "-d", w.file(oneContainer)), 0, "pod/web running\n", "")
}

// A pod whose image cannot be run as its manifest wants is tried again, too.
func TestPendingPodThatCannotBeMade(t *testing.T) {
	w := waitsHere(t, noNetwork(), "apply")
	w.mu.Lock()
	w.startErr = errors.New("no room")
	w.mu.Unlock()
	w.come()
	p := w.begin("", "up", "-d", w.file(oneContainer))
	if got := p.wait(); got.code != 1 || !strings.Contains(got.err, "no room") {
		t.Errorf("%+v", got)
	}
	if got := w.run("describe", "web"); !strings.Contains(got.out, "CreatePodSandboxError") || !strings.Contains(got.out, "FailedCreatePodSandBox") {
		t.Errorf("%+v", got)
	}
	w.mu.Lock()
	w.startErr = nil
	w.mu.Unlock()
	check(t, w.run("up", "-d", w.file(oneContainer)), 0, "pod/web running\n", "")
}

// A client that is interrupted leaves the pod to its puller.
func TestInterruptedClientLeavesThePull(t *testing.T) {
	w := newWorld(t)
	w.imageErr = noNetwork()
	p := w.begin("", "up", "-d", w.file(oneContainer))
	p.says("ImagePullBackOff")
	p.signals <- syscall.SIGINT
	if got := p.wait(); got.code != 130 || !strings.Contains(got.err, "pod web is left as it is") {
		t.Errorf("%+v", got)
	}
	if !w.dirs.Pod("default", "web").Alive() {
		t.Error("nobody pulls")
	}
}
