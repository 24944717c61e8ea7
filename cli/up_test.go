package cli

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/pod"
)

const oneContainer = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 7
  containers:
  - {name: app, image: "busybox:1", command: [sh]}
`

const threeContainers = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  initContainers:
  - {name: prepare, image: "busybox:1"}
  containers:
  - {name: app, image: "busybox:1"}
  - {name: log-shipper, image: "busybox:1"}
`

func (w *world) file(text string) string {
	w.t.Helper()
	f, err := os.CreateTemp(w.t.TempDir(), "*.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	return f.Name()
}

func terminated(name string, code int, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Terminated: &pod.Terminated{ExitCode: code, Reason: reason, Message: message, StartedAt: startOf(reason)}}}
}

// startOf is the time at which a container was started that has ended so.
func startOf(reason string) time.Time {
	if reason == "StartError" || reason == "CreateContainerError" {
		return time.Time{} // never
	}
	return time.Unix(1e9, 0)
}

func isRunning(name string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Running: &pod.RunningAt{}}, Ready: true, Started: true}
}

func waiting(name, reason, message string) pod.ContainerStatus {
	return pod.ContainerStatus{Name: name, State: pod.State{Waiting: &pod.Waiting{Reason: reason, Message: message}}}
}

func status(phase pod.Phase, containers ...pod.ContainerStatus) pod.Status {
	return pod.Status{Phase: phase, Containers: containers}
}

func check(t *testing.T, got result, code int, out, err string) {
	t.Helper()
	if d := cmp.Diff(result{code, out, err}, got, cmp.AllowUnexported(result{})); d != "" {
		t.Error(d)
	}
}

func TestUpShowsOneContainerAsItIs(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.publish(status(pod.Running, isRunning("app")))
		s.log("app", 0, "stdout F hello", "stderr P no new", "stderr P line")
		s.end(status(pod.Succeeded, terminated("app", 0, "Completed", "")))
	}
	check(t, w.run("up", w.file(oneContainer)), 0, "hello\nno newline", "")
}

func TestUpPrefixesSeveralContainers(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.log("prepare", 0, "stdout F prepared", "stdout P half a ")
		s.log("prepare", 0, "stdout F line")
		s.log("app", 0, "stdout F one", "stdout P end")
		s.end(status(pod.Succeeded, terminated("app", 0, "Completed", ""), terminated("log-shipper", 0, "Completed", "")))
	}
	// Though all of it is there at once, an init container speaks before those that
	// start after it.
	check(t, w.run("up", w.file(threeContainers)), 0, "prepare | prepared\nprepare | half a line\napp | one\napp | end\n", "")
}

func TestUpColoursContainers(t *testing.T) {
	w := newWorld(t)
	w.env["CLICOLOR_FORCE"] = "1"
	w.script = func(s *supervisor) {
		s.log("app", 0, "stdout F one")
		s.end(status(pod.Succeeded))
	}
	check(t, w.run("up", w.file(threeContainers)), 0, "\x1b[33mapp         |\x1b[0m one\n", "")
}

func TestUpFollowsRestarts(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.log("app", 0, "stdout F first")
		crash := waiting("app", "CrashLoopBackOff", "back-off 10s restarting failed container=app")
		crash.RestartCount = 1
		s.publish(status(pod.Running, terminated("app", 3, "Error", "")))
		s.publish(status(pod.Running, crash))
		s.log("app", 1, "stdout F second")
		s.end(status(pod.Succeeded, terminated("app", 0, "Completed", "")))
	}
	got := w.run("up", w.file(strings.Replace(oneContainer, "Never", "OnFailure", 1)))
	if got.code != 0 || got.out != "first\nsecond\n" {
		t.Errorf("%+v", got)
	}
}

func TestUpSaysWhyThePodFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		end  pod.Status
		want string
	}{
		"exit code": {status(pod.Failed, terminated("app", 3, "Error", "")), "container app exited with code 3"},
		"message":   {status(pod.Failed, terminated("app", 3, "Error", "no\x1b[2J disk\n")), `container app exited with code 3: no\u001b[2J disk`},
		"OOM":       {status(pod.Failed, terminated("app", 137, "OOMKilled", "")), "container app ended with OOMKilled (exit code 137)"},
		"no start":  {status(pod.Failed, terminated("app", 127, "StartError", "no such program")), "container app cannot be started: no such program"},
		"the pod's": {pod.Status{Phase: pod.Failed, Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline"},
			"DeadlineExceeded: Pod was active on the node longer than the specified deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script = func(s *supervisor) { s.end(tc.end) }
			got := w.run("up", w.file(oneContainer))
			want := "podrun: pod web failed: " + tc.want + "\nhint: podrun logs web shows its output, podrun down web removes it\n"
			if got.code != 1 || !strings.HasSuffix(got.err, want) {
				t.Errorf("%+v", got)
			}
			if _, err := w.dirs.Pod("default", "web").Plan(); err != nil {
				t.Errorf("the record of the pod is gone: %v", err)
			}
		})
	}
}

func TestUpSaysWarningsOnce(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		st := status(pod.Running, isRunning("app"))
		st.Warnings = []string{"limits are not enforced: no cgroup"}
		s.publish(st)
		st.Phase = pod.Succeeded
		s.end(st)
	}
	check(t, w.run("up", w.file(oneContainer)), 0, "", "podrun: pod web: warning: limits are not enforced: no cgroup\n")
}

func TestUpSupervisorKilled(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.publish(status(pod.Running, isRunning("app")))
		s.log("app", 0, "stdout F the last word")
		s.kill()
	}
	got := w.run("up", w.file(oneContainer))
	if got.code != 1 || got.out != "the last word\n" || !strings.Contains(got.err, "killed from outside") {
		t.Errorf("%+v", got)
	}
}

func TestUpJoinsARunningPod(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		for range rollout.ContextLines {
			s.log("app", 0, "stdout F old")
		}
		s.log("app", 0, "stdout F recent")
		s.publish(status(pod.Running, isRunning("app")))
	}
	file := w.file(oneContainer)
	if got := w.run("up", "-d", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	p := w.begin("", "up", file)
	p.says("recent\n")
	p.signals <- syscall.SIGINT
	got := p.wait()
	if got.code != 130 || got.out != strings.Repeat("old\n", rollout.ContextLines-1)+"recent\n" || !strings.Contains(got.err, "pod web goes on running") {
		t.Errorf("%+v", got)
	}
	if !w.dirs.Pod("default", "web").Alive() {
		t.Error("the pod that ran before was stopped")
	}
}

func TestUpSeveralPods(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.log("app", 0, "stdout F I am "+s.pod.Name)
		if s.pod.Name == "bad" {
			s.end(status(pod.Failed, terminated("app", 1, "Error", "")))
			return
		}
		s.end(status(pod.Succeeded, terminated("app", 0, "Completed", "")))
	}
	bad := strings.Replace(oneContainer, "name: web", "name: bad", 1)
	got := w.run("up", w.file(oneContainer+"---"+bad))
	if got.code != 1 || !strings.Contains(got.out, "web/app | I am web\n") || !strings.Contains(got.out, "bad/app | I am bad\n") ||
		!strings.Contains(got.err, "pod bad failed") || strings.Contains(got.err, "pod web failed") {
		t.Errorf("%+v", got)
	}
}

// Where the output cannot go, the user hears of it while the pod runs.
func TestUpCannotWrite(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	w := newWorld(t)
	w.script = func(s *supervisor) {
		s.log("app", 0, "stdout F hello")
		s.publish(status(pod.Running, isRunning("app")))
	}
	got := w.beginWith(strings.NewReader(""), full, "up", w.file(oneContainer)).wait()
	if got.code != 1 || !strings.Contains(got.err, "cannot show the output of pod web, which goes on running: write /dev/full: no space left on device") {
		t.Errorf("%+v", got)
	}
}

// On a terminal every line has its container's name and colour, and the terminal
// obeys podrun alone.
func TestUpOnATerminal(t *testing.T) {
	for term, want := range map[string]string{
		"xterm": "\x1b[36mapp |\x1b[0m \x1b[1mbold\x1b[0m\\u001b[2J\x1b[0m\r\n",
		"dumb":  "app | \x1b[1mbold\x1b[0m\\u001b[2J\x1b[0m\r\n",
	} {
		user, terminal := openTerminal(t)
		var shown buffer
		go io.Copy(&shown, user)
		w := newWorld(t)
		w.env["TERM"] = term
		w.script = func(s *supervisor) {
			s.log("app", 0, "stdout F \x1b[1mbold\x1b[0m\x1b[2J")
			s.end(status(pod.Succeeded, terminated("app", 0, "Completed", "")))
		}
		if got := w.beginWith(strings.NewReader(""), terminal, "up", w.file(oneContainer)).wait(); got.code != 0 || got.err != "" {
			t.Errorf("%+v", got)
		}
		waitFor(t, &shown, "\n")
		if shown.String() != want {
			t.Errorf("TERM=%s: %q, want %q", term, shown.String(), want)
		}
	}
}
