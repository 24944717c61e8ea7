package up_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

func TestUpResizesARunningPod(t *testing.T) {
	h, file := clitest.RunningPod(t)
	before, err := h.Dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	larger := h.File(strings.NewReplacer("100m", "250m", "64Mi", "96Mi").Replace(clitest.Resizable))
	h.ImageErr = errors.New("no network") // none is needed
	clitest.CheckResult(t, h.Run("up", "-d", larger), 0, "pod/web configured\n", "")
	after, err := h.Dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	if want := [][2]int64{{100, 250}}; !slices.Equal(h.Resized, want) {
		t.Errorf("resizes of the scope: %v, want %v", h.Resized, want)
	}
	if after.UID != before.UID || after.Resources.CPURequest != 250 || after.Resources.MemoryLimit != 96<<20 || after.Containers[0].Revision != 0 {
		t.Errorf("the plan is %+v", after)
	}
	clitest.CheckResult(t, h.Run("up", "-d", larger), 0, "pod/web unchanged\n", "")
	got := h.Run("get", "web", "-o", "yaml")
	for _, want := range []string{"generation: 2", "uid: " + before.UID, "memory: 96Mi"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("get does not say %q:\n%s", want, got.Out)
		}
	}
	clitest.CheckResult(t, h.Run("up", "-d", file), 0, "pod/web configured\n", "")
}

// TestUpReportsFailedResize checks that a change which the supervisor rejects is not recorded, so that the
// next up tries it again.
func TestUpReportsFailedResize(t *testing.T) {
	h, file := clitest.RunningPod(t)
	s := h.Supervisor("default", "web")
	s.Mu.Lock()
	s.ApplyError = "cannot decrease memory limits: attempting to set pod memory limit (1048576) below current usage (2097152)"
	s.Mu.Unlock()
	smaller := h.File(strings.NewReplacer("64Mi", "1Mi", "100m", "50m").Replace(clitest.Resizable))
	clitest.CheckResult(t, h.Run("up", "-d", smaller), 1, "", "podrun: cannot change pod web: "+s.ApplyError+"\n")
	if want := [][2]int64{{100, 50}, {50, 100}}; !slices.Equal(h.Resized, want) {
		t.Errorf("resizes of the scope: %v, want %v", h.Resized, want)
	}
	h.ResizeErr = errors.New("request SetUnitProperties from systemd: it does not answer")
	clitest.CheckResult(t, h.Run("up", "-d", smaller), 1, "", "podrun: cannot change pod web: "+h.ResizeErr.Error()+"\n")
	clitest.CheckResult(t, h.Run("up", "-d", file), 0, "pod/web unchanged\n", "")
}

func TestUpChecksAResize(t *testing.T) {
	h, _ := clitest.RunningPod(t)
	for from, to := range map[string]string{
		"limits: {memory: 64Mi}":                        "limits: {}",
		"requests: {cpu: 100m}, limits: {memory: 64Mi}": "requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi, cpu: 100m}",
	} {
		got := h.Run("up", "-d", h.File(strings.Replace(clitest.Resizable, from, to, 1)))
		want := "resource limits cannot be removed"
		if to != "limits: {}" {
			want = "Pod QOS Class may not change as a result of resizing"
		}
		if got.Code == 0 || !strings.Contains(got.Err, want) || !strings.Contains(got.Err, "podrun up --replace") {
			t.Errorf("%s: %+v", to, got)
		}
	}
}

func TestUpRestartsAContainerWithAnotherImage(t *testing.T) {
	h, _ := clitest.RunningPod(t)
	file := h.File(strings.Replace(clitest.Resizable, "image: example", "image: another", 1))
	up := h.Begin("", "up", "-d", file)
	s := h.Supervisor("default", "web")
	// It is done when the container has been restarted.
	for {
		plan, err := s.Pod.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if plan.Containers[0].Revision == 1 {
			break
		}
	}
	again := clitest.RunningContainer("app")
	again.RestartCount = 1
	s.Publish(clitest.Status(pod.Running, again))
	up.WaitOutput("pod/web configured\n")
}

func TestUpNamesWhatCannotBeChanged(t *testing.T) {
	h, _ := clitest.RunningPod(t)
	other := h.File(strings.Replace(clitest.Resizable, "image: example", "image: example, command: [x], env: [{name: A}]", 1))
	clitest.CheckResult(t, h.Run("up", "-d", other), 1, "", "podrun: pod web is already running and cannot be changed in place to match its manifest: "+
		"spec.containers[0].command, spec.containers[0].env\nhint: podrun up --replace stops it and starts the new one; podrun down web removes it\n")
}

func TestUpReplaces(t *testing.T) {
	h, file := clitest.RunningPod(t)
	old, err := h.Dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	clitest.CheckResult(t, h.Run("up", "-d", "--replace", file), 0, "pod/web unchanged\n", "")
	s := h.Supervisor("default", "web")
	go func() {
		<-s.Stops
		s.End(clitest.Status(pod.Succeeded))
	}()
	other := h.File(strings.Replace(clitest.Resizable, "image: example", "image: example, command: [x]", 1))
	clitest.CheckResult(t, h.Run("up", "-d", "--replace", other), 0, "pod/web running\n", "podrun: replacing pod web\n")
	if plan, err := h.Dirs.Pod("default", "web").Plan(); err != nil || plan.UID == old.UID || plan.Containers[0].Args[0] != "x" {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
}
