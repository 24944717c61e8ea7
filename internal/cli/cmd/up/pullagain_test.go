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

// TestUpWaitsForARegistry checks that the pod waits for a registry that does not answer, with an event and a
// message, and that another up retries at once.
func TestUpWaitsForARegistry(t *testing.T) {
	for _, words := range [][]string{{"up", "-d"}, {"up"}} {
		h := clitest.NewHost(t)
		h.ImageErrs = []error{clitest.NoNetworkError()}
		h.Script = func(s *clitest.Supervisor) {
			s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
		}
		file := h.File(clitest.OneContainer)
		first := h.Begin("", append(words, file)...)
		first.WaitOutput("back-off")
		clitest.Eventually(t, "the pod waits to pull again", func() bool { return strings.Contains(h.Run("events", "web").Out, "Error: ImagePullBackOff") })
		second := h.Run("up", "-d", file)
		got := first.Wait()
		if got.Code != 0 || second.Code != 0 || h.Pulls() != 2 {
			t.Fatalf("%+v, then %+v, asked %d times", got, second, h.Pulls())
		}
		for _, want := range []string{
			"cannot use image busybox:1: dial: network is unreachable",
			"podrun: pod web: container app waits: ImagePullBackOff: back-off pulling image busybox:1; next try in 1h0m0s",
		} {
			if !strings.Contains(got.Err, want) {
				t.Errorf("%q is not said in\n%s", want, got.Err)
			}
		}
		events := h.Run("events", "web")
		for _, want := range []string{"Pulling image", "Failed to pull image", "Error: ErrImagePull", "Back-off pulling image", "Error: ImagePullBackOff"} {
			if !strings.Contains(events.Out, want) {
				t.Errorf("no event %q in\n%s", want, events.Out)
			}
		}
	}
}

// TestUpFailsOnPermanentPullError checks that a permanent pull error fails at once, also if only one of
// several images has it.
func TestUpFailsOnPermanentPullError(t *testing.T) {
	h := clitest.NewHost(t)
	h.ImageErrs = []error{&image.Error{Reason: image.ErrImagePull, Err: errors.New("manifest unknown")}}
	if got := h.Run("up", "-d", h.File(clitest.OneContainer)); got.Code != 1 || h.Pulls() != 1 || strings.Contains(got.Err, "BackOff") {
		t.Errorf("%+v, asked %d times", got, h.Pulls())
	}
	h = clitest.NewHost(t)
	h.ImageErrs = []error{clitest.NoNetworkError(), &image.Error{Reason: image.SignatureValidationFailed, Err: errors.New("refused")}}
	two := strings.Replace(clitest.OneContainer, "  - {name: app,", "  - {name: other, image: other}\n  - {name: app,", 1)
	if got := h.Run("up", "-d", h.File(two)); got.Code != 1 || h.Pulls() != 2 || strings.Contains(got.Err, "BackOff") {
		t.Errorf("%+v, asked %d times", got, h.Pulls())
	}
}

// TestUpTimeoutWhilePulling checks that --timeout ends the command but not the pod's wait, and that Ctrl-C in
// the foreground removes the pod.
func TestUpTimeoutWhilePulling(t *testing.T) {
	h := clitest.NewHost(t)
	h.ImageErr = clitest.NoNetworkError()
	got := h.Run("up", "-d", "--timeout", "200ms", h.File(clitest.OneContainer))
	if got.Code != 1 || !strings.Contains(got.Err, "not all images of pod web were pulled within the --timeout") {
		t.Errorf("%+v", got)
	}
	clitest.CheckResult(t, h.Run("down", "web"), 0, "pod/web deleted\n", "")
	p := h.Begin("", "up", h.File(clitest.OneContainer))
	p.WaitOutput("ImagePullBackOff")
	p.Signals <- syscall.SIGINT
	if got := p.Wait(); got.Code != 130 {
		t.Errorf("%+v", got)
	}
	if h.Dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod was made")
	}
}

// TestUpPull checks that --pull overrides the manifest, for this command only.
func TestUpPull(t *testing.T) {
	for word, want := range map[string]string{"": image.Unset, "always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer} {
		h := clitest.NewHost(t)
		h.Script = func(s *clitest.Supervisor) {
			s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
		}
		words := []string{"up"}
		if word != "" {
			words = append(words, "--pull="+word)
		}
		if got := h.Run(append(words, h.File(clitest.OneContainer))...); got.Code != 0 || h.Policies["busybox:1"] != want {
			t.Errorf("%s: %+v, policy %q", word, got, h.Policies["busybox:1"])
		}
	}
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("up", "--pull=sometimes", h.File(clitest.OneContainer)), 2, "", "podrun: --pull must be always, missing, never or newer, not \"sometimes\"\nhint: podrun up --help\n")
}

// TestUpCollectsImages checks that unused images are removed before a pull if the disk is nearly full, and
// that this is reported.
func TestUpCollectsImages(t *testing.T) {
	h := clitest.NewHost(t)
	h.Pruned = image.Pruned{Images: make([]image.Info, 2), Bytes: 3e6}
	h.ImageErrs = []error{errors.New("none")}
	got := h.Run("up", "-d", h.File(clitest.OneContainer))
	if room, none := strings.Index(got.Err, "podrun: the disk is nearly full: 2 unused images removed, 3.0 MB freed\n"), strings.Index(got.Err, "none"); room < 0 || none < room {
		t.Errorf("%+v", got)
	}
}
