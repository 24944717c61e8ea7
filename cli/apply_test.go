package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/podrun/podrun/pod"
)

const resizable = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: app, image: example, resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}
`

// runningPod has a pod of resizable and gives its file.
func runningPod(t *testing.T) (*world, string) {
	w := newWorld(t)
	w.script = func(s *supervisor) { s.publish(status(pod.Running, isRunning("app"))) }
	check(t, w.run("up", "-d", w.file(resizable)), 0, "pod/web running\n", "")
	return w, w.file(resizable)
}

func TestUpResizesARunningPod(t *testing.T) {
	w, file := runningPod(t)
	before, err := w.dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	larger := w.file(strings.NewReplacer("100m", "250m", "64Mi", "96Mi").Replace(resizable))
	w.imageErr = errors.New("no network") // none is needed
	check(t, w.run("up", "-d", larger), 0, "pod/web configured\n", "")
	after, err := w.dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.Resources.CPURequest != 250 || after.Resources.MemoryLimit != 96<<20 || after.Containers[0].Revision != 0 {
		t.Errorf("the plan is %+v", after)
	}
	check(t, w.run("up", "-d", larger), 0, "pod/web unchanged\n", "")
	got := w.run("get", "web", "-o", "yaml")
	for _, want := range []string{"generation: 2", "uid: " + before.UID, "memory: 96Mi"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("get does not say %q:\n%s", want, got.out)
		}
	}
	check(t, w.run("up", "-d", file), 0, "pod/web configured\n", "")
}

// What the supervisor refuses is not recorded: the next up tries it again.
func TestUpSaysWhyAResizeIsRefused(t *testing.T) {
	w, file := runningPod(t)
	s := w.supervisor("default", "web")
	s.mu.Lock()
	s.refuses = "cannot decrease memory limits: attempting to set pod memory limit (1048576) below current usage (2097152)"
	s.mu.Unlock()
	smaller := w.file(strings.Replace(resizable, "64Mi", "1Mi", 1))
	check(t, w.run("up", "-d", smaller), 1, "", "podrun: cannot change pod web: "+s.refuses+"\n")
	check(t, w.run("up", "-d", file), 0, "pod/web unchanged\n", "")
}

func TestUpChecksAResize(t *testing.T) {
	w, _ := runningPod(t)
	for from, to := range map[string]string{
		"limits: {memory: 64Mi}":                        "limits: {}",
		"requests: {cpu: 100m}, limits: {memory: 64Mi}": "requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi, cpu: 100m}",
	} {
		got := w.run("up", "-d", w.file(strings.Replace(resizable, from, to, 1)))
		want := "resource limits cannot be removed"
		if to != "limits: {}" {
			want = "Pod QOS Class may not change as a result of resizing"
		}
		if got.code == 0 || !strings.Contains(got.err, want) || !strings.Contains(got.err, "podrun up --replace") {
			t.Errorf("%s: %+v", to, got)
		}
	}
}

func TestUpRestartsAContainerWithAnotherImage(t *testing.T) {
	w, _ := runningPod(t)
	file := w.file(strings.Replace(resizable, "image: example", "image: another", 1))
	up := w.begin("", "up", "-d", file)
	s := w.supervisor("default", "web")
	// It is done when the container has been restarted.
	for {
		plan, err := s.pod.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if plan.Containers[0].Revision == 1 {
			break
		}
	}
	again := isRunning("app")
	again.RestartCount = 1
	s.publish(status(pod.Running, again))
	up.says("pod/web configured\n")
}

func TestUpNamesWhatCannotBeChanged(t *testing.T) {
	w, _ := runningPod(t)
	other := w.file(strings.Replace(resizable, "image: example", "image: example, command: [x], env: [{name: A}]", 1))
	check(t, w.run("up", "-d", other), 1, "", "podrun: pod web is running already, made from a manifest that differs in what cannot be changed while it runs: "+
		"spec.containers[0].command, spec.containers[0].env\nhint: podrun up --replace stops it and starts the new one; podrun down web removes it\n")
}

func TestUpReplaces(t *testing.T) {
	w, file := runningPod(t)
	old, err := w.dirs.Pod("default", "web").Plan()
	if err != nil {
		t.Fatal(err)
	}
	check(t, w.run("up", "-d", "--replace", file), 0, "pod/web unchanged\n", "")
	s := w.supervisor("default", "web")
	go func() {
		<-s.stops
		s.end(status(pod.Succeeded))
	}()
	other := w.file(strings.Replace(resizable, "image: example", "image: example, command: [x]", 1))
	check(t, w.run("up", "-d", "--replace", other), 0, "pod/web running\n", "podrun: replacing pod web\n")
	if plan, err := w.dirs.Pod("default", "web").Plan(); err != nil || plan.UID == old.UID || plan.Containers[0].Args[0] != "x" {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
}
