package cli

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// noNetwork is what a pull says on a machine that has none yet.
func noNetwork() error {
	return &image.Error{Reason: image.ErrImagePull, Err: report.New(report.Failure, "", "%w", &net.OpError{Op: "dial", Err: syscall.ENETUNREACH})}
}

// A pod waits for a registry that does not answer, and the command reports it; the pod has it
// among its events. Another up has an attempt made now.
func TestUpWaitsForARegistry(t *testing.T) {
	for _, words := range [][]string{{"up", "-d"}, {"up"}} {
		w := newWorld(t)
		w.imageErrs = []error{noNetwork()}
		w.script = func(s *supervisor) { s.end(status(pod.Succeeded, terminated("app", 0, "Completed", ""))) }
		file := w.file(oneContainer)
		first := w.begin("", append(words, file)...)
		first.says("back-off")
		eventually(t, "the pod waits to pull again", func() bool { return strings.Contains(w.run("events", "web").out, "Error: ImagePullBackOff") })
		second := w.run("up", "-d", file)
		got := first.wait()
		if got.code != 0 || second.code != 0 || w.asked() != 2 {
			t.Fatalf("%+v, then %+v, asked %d times", got, second, w.asked())
		}
		for _, want := range []string{
			"cannot use image busybox:1: dial: network is unreachable",
			"podrun: pod web: container app waits: ImagePullBackOff: back-off pulling image busybox:1; next try in 1h0m0s",
		} {
			if !strings.Contains(got.err, want) {
				t.Errorf("%q is not said in\n%s", want, got.err)
			}
		}
		events := w.run("events", "web")
		for _, want := range []string{"Pulling image", "Failed to pull image", "Error: ErrImagePull", "Back-off pulling image", "Error: ImagePullBackOff"} {
			if !strings.Contains(events.out, want) {
				t.Errorf("no event %q in\n%s", want, events.out)
			}
		}
	}
}

// What will not be better by itself is an error at once: several images, of which one
// does not exist, too.
func TestUpDoesNotWaitForWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	w.imageErrs = []error{&image.Error{Reason: image.ErrImagePull, Err: errors.New("manifest unknown")}}
	if got := w.run("up", "-d", w.file(oneContainer)); got.code != 1 || w.asked() != 1 || strings.Contains(got.err, "BackOff") {
		t.Errorf("%+v, asked %d times", got, w.asked())
	}
	w = newWorld(t)
	w.imageErrs = []error{noNetwork(), &image.Error{Reason: image.SignatureValidationFailed, Err: errors.New("refused")}}
	two := strings.Replace(oneContainer, "  - {name: app,", "  - {name: other, image: other}\n  - {name: app,", 1)
	if got := w.run("up", "-d", w.file(two)); got.code != 1 || w.asked() != 2 || strings.Contains(got.err, "BackOff") {
		t.Errorf("%+v, asked %d times", got, w.asked())
	}
}

// --timeout ends the waiting of the command, and the pod goes on waiting. Ctrl-C of a foreground
// removes the pod.
func TestUpGivesUpWaitingForARegistry(t *testing.T) {
	w := newWorld(t)
	w.imageErr = noNetwork()
	got := w.run("up", "-d", "--timeout", "200ms", w.file(oneContainer))
	if got.code != 1 || !strings.Contains(got.err, "not all images of pod web came within the --timeout") {
		t.Errorf("%+v", got)
	}
	check(t, w.run("down", "web"), 0, "pod/web deleted\n", "")
	p := w.begin("", "up", w.file(oneContainer))
	p.says("ImagePullBackOff")
	p.signals <- syscall.SIGINT
	if got := p.wait(); got.code != 130 {
		t.Errorf("%+v", got)
	}
	if w.dirs.Pod("default", "web").HasRemains() {
		t.Error("something of the pod was made")
	}
}

// --pull goes before what the manifest says, this time only.
func TestUpPull(t *testing.T) {
	for word, want := range map[string]string{"": image.Unset, "always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer} {
		w := newWorld(t)
		w.script = func(s *supervisor) { s.end(status(pod.Succeeded, terminated("app", 0, "Completed", ""))) }
		words := []string{"up"}
		if word != "" {
			words = append(words, "--pull="+word)
		}
		if got := w.run(append(words, w.file(oneContainer))...); got.code != 0 || w.policies["busybox:1"] != want {
			t.Errorf("%s: %+v, policy %q", word, got, w.policies["busybox:1"])
		}
	}
	w := newWorld(t)
	check(t, w.run("up", "--pull=sometimes", w.file(oneContainer)), 2, "", "podrun: --pull takes always, missing, never or newer, not \"sometimes\"\nhint: podrun up --help\n")
}

// Unused images go when the disk is nearly full, before anything is fetched, and that is said.
func TestUpMakesRoom(t *testing.T) {
	w := newWorld(t)
	w.pruned = image.Pruned{Images: make([]image.Info, 2), Bytes: 3e6}
	w.imageErrs = []error{errors.New("none")}
	got := w.run("up", "-d", w.file(oneContainer))
	if room, none := strings.Index(got.err, "podrun: the disk is nearly full: 2 unused images removed, 3.0 MB freed\n"), strings.Index(got.err, "none"); room < 0 || none < room {
		t.Errorf("%+v", got)
	}
}
