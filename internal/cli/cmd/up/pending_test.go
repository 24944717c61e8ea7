package up_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// unknownManifest is what a registry answers that does not have the image.
func unknownManifest() error {
	return &image.Error{Reason: image.ErrImagePull, Err: errors.New("manifest unknown")}
}

// waitsHere returns a host on which a pod waits for its image, with an hour between attempts.
func waitsHere(t *testing.T, err error, words ...string) *clitest.Host {
	t.Helper()
	h := clitest.NewHost(t)
	h.ImageErr = err
	h.Script = func(s *clitest.Supervisor) { s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app"))) }
	h.Run(append(words, h.File(clitest.OneContainer))...)
	clitest.Eventually(t, "the pod waits", func() bool {
		st, err := h.Dirs.Pod("default", "web").Status()
		return err == nil && st.ImagePull != nil && len(st.Containers) == 1 && st.Containers[0].State.Waiting != nil && st.Containers[0].State.Waiting.Reason != "ContainerCreating"
	})
	return h
}

func come(h *clitest.Host) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.ImageErr = nil
}

// TestPendingPodInCommands checks that all commands find a pod whose image is missing.
func TestPendingPodInCommands(t *testing.T) {
	h := waitsHere(t, unknownManifest(), "apply")
	for _, c := range []struct{ command, want string }{
		{"get pods", "Err"}, {"ps", "0/1"}, {"describe web", "ErrImagePull"}, {"events web", "Failed to pull image \"busybox:1\": manifest unknown"},
		{"get web -o yaml", "phase: Pending"}, {"get web -o yaml", "reason: PodSandboxNotReady"}, {"events web", "Pulling image"},
	} {
		if got := h.Run(strings.Fields(c.command)...); got.Code != 0 || !strings.Contains(got.Out, c.want) {
			t.Errorf("%s lacks %q: %+v", c.command, c.want, got)
		}
	}
	if got := h.Run("logs", "web"); got.Code != 1 || !strings.Contains(got.Err, "waiting to start") {
		t.Errorf("%+v", got)
	}
	if got := h.Run("exec", "web", "--", "true"); got.Code == 0 || !strings.Contains(got.Err, "pod web waits for its images") {
		t.Errorf("%+v", got)
	}
	clitest.CheckResult(t, h.Run("wait", "--for=phase=Pending", "web"), 0, "pod/web condition met\n", "")
	clitest.CheckResult(t, h.Run("down", "web"), 0, "pod/web deleted\n", "")
	if h.Dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod is left")
	}
}

// TestPendingPodStarts checks that up of the same manifest retries the pull at once, and that the pod starts
// after it.
func TestPendingPodStarts(t *testing.T) {
	h := waitsHere(t, unknownManifest(), "up", "-d")
	come(h)
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web running\n", "")
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web unchanged\n", "")
	if plan, err := h.Dirs.Pod("default", "web").Plan(); err != nil || plan.ImagesPending || plan.Containers[0].ImageID == "" {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestPendingPodHasEachEventOnce checks that a pod whose pull has failed once has each event of that attempt once when
// it starts.
func TestPendingPodHasEachEventOnce(t *testing.T) {
	h := waitsHere(t, unknownManifest(), "up", "-d")
	web := h.Dirs.Pod("default", "web")
	clitest.Eventually(t, "the pod backs off", func() bool {
		st, err := web.Status()
		return err == nil && st.Containers[0].State.Waiting != nil && st.Containers[0].State.Waiting.Reason == image.ImagePullBackOff
	})
	come(h)
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web running\n", "")
	events, err := web.Events()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range events {
		if e.Reason == "BackOff" || e.Reason == "Failed" {
			if count++; e.Count != 1 {
				t.Errorf("%s %q has the count %d", e.Reason, e.Message, e.Count)
			}
		}
	}
	if count != 4 {
		t.Errorf("%d events of the failed attempt: %+v", count, events)
	}
}

// TestPendingPodIsReplaced checks that another manifest replaces a pod that was not started yet.
func TestPendingPodIsReplaced(t *testing.T) {
	h := waitsHere(t, unknownManifest(), "apply")
	before, err := h.Dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	come(h)
	got := h.Run("up", "-d", h.File(strings.Replace(clitest.OneContainer, "busybox:1", "busybox:2", 1)))
	if got.Code != 0 || got.Out != "pod/web running\n" {
		t.Fatalf("%+v", got)
	}
	after, err := h.Dirs.Pod("default", "web").Plan()
	if err != nil || after.UID == before.UID || after.Containers[0].Image != "busybox:2" {
		t.Errorf("%+v, %v", after, err)
	}
}

// TestUpFailFast checks that with --fail-fast the first failed pull is an error, otherwise only a permanent
// failure; the pod stays.
func TestUpFailFast(t *testing.T) {
	for _, c := range []struct {
		err   error
		words []string
	}{
		{clitest.NoNetworkError(), []string{"up", "-d", "--fail-fast"}},
		{unknownManifest(), []string{"up", "-d"}},
	} {
		h := clitest.NewHost(t)
		h.ImageErr = c.err
		got := h.Run(append(c.words, h.File(clitest.OneContainer))...)
		if got.Code != 1 || !strings.Contains(got.Err, "cannot use image busybox:1") || !strings.Contains(got.Err, "pod web keeps waiting") {
			t.Errorf("%v: %+v", c.words, got)
		}
		if st, err := h.Dirs.Pod("default", "web").Status(); err != nil || st.Phase != pod.Pending {
			t.Errorf("%v: %+v, %v", c.words, st, err)
		}
	}
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("up", "--fail-fast", h.File(clitest.OneContainer)), 2, "", "podrun: --fail-fast requires -d: in the foreground, up ends with the pods\nhint: podrun up --help\n")
}

// TestPendingPodWithPullPolicyNever checks that a pod also waits for an image with imagePullPolicy Never.
func TestPendingPodWithPullPolicyNever(t *testing.T) {
	h := waitsHere(t, &image.Error{Reason: image.ErrImageNeverPull, Err: errors.New("not present")}, "up", "-d")
	if got := h.Run("describe", "web"); !strings.Contains(got.Out, "ErrImageNeverPull") || !strings.Contains(got.Out, `Container image "busybox:1" is not present with pull policy of Never`) {
		t.Errorf("%+v", got)
	}
	come(h)
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web running\n", "")
}

// TestForegroundRemovesPendingPod checks that up in the foreground removes the pod if its image cannot be
// pulled.
func TestForegroundRemovesPendingPod(t *testing.T) {
	h := clitest.NewHost(t)
	h.ImageErr = unknownManifest()
	if got := h.Run("up", h.File(clitest.OneContainer)); got.Code != 1 || !strings.Contains(got.Err, "manifest unknown") {
		t.Errorf("%+v", got)
	}
	if h.Dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod is left")
	}
}

// TestPendingPodIsStopped checks that the record of a stopped pending pod stays, and that up creates the pod
// again.
func TestPendingPodIsStopped(t *testing.T) {
	h := waitsHere(t, clitest.NoNetworkError(), "apply")
	clitest.CheckResult(t, h.Run("stop", "web"), 0, "pod/web stopped\n", "")
	if st, err := h.Dirs.Pod("default", "web").Status(); err != nil || st.Phase != pod.Failed || st.ImagePull != nil {
		t.Fatalf("%+v, %v", st, err)
	}
	come(h)
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web running\n", "")
}

// TestPendingPodWithFailedStart checks that the failed start of a pulled pod is an error with events, and
// that the next up starts the pod.
func TestPendingPodWithFailedStart(t *testing.T) {
	h := waitsHere(t, clitest.NoNetworkError(), "apply")
	h.Mu.Lock()
	h.StartErr = errors.New("no room")
	h.Mu.Unlock()
	come(h)
	p := h.Begin("", "up", "-d", h.File(clitest.OneContainer))
	if got := p.Wait(); got.Code != 1 || !strings.Contains(got.Err, "no room") {
		t.Errorf("%+v", got)
	}
	if got := h.Run("describe", "web"); !strings.Contains(got.Out, "CreatePodSandboxError") || !strings.Contains(got.Out, "FailedCreatePodSandBox") {
		t.Errorf("%+v", got)
	}
	h.Mu.Lock()
	h.StartErr = nil
	h.Mu.Unlock()
	clitest.CheckResult(t, h.Run("up", "-d", h.File(clitest.OneContainer)), 0, "pod/web running\n", "")
}

// TestInterruptedUpKeepsPuller checks that the puller continues when up -d is interrupted.
func TestInterruptedUpKeepsPuller(t *testing.T) {
	h := clitest.NewHost(t)
	h.ImageErr = clitest.NoNetworkError()
	p := h.Begin("", "up", "-d", h.File(clitest.OneContainer))
	p.WaitOutput("ImagePullBackOff")
	p.Signals <- syscall.SIGINT
	if got := p.Wait(); got.Code != 130 || !strings.Contains(got.Err, "pod web keeps running") {
		t.Errorf("%+v", got)
	}
	if !h.Dirs.Pod("default", "web").Alive() {
		t.Error("nobody pulls")
	}
}
