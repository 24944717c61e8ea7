package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
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
	return pod.ContainerStatus{Name: name, State: pod.State{Terminated: &pod.Terminated{ExitCode: code, Reason: reason, Message: message}}}
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

func TestInterruptStopsAndRemoves(t *testing.T) {
	for name, tc := range map[string]struct {
		signals []os.Signal
		code    int
	}{
		"once":      {[]os.Signal{syscall.SIGINT}, 130},
		"twice":     {[]os.Signal{syscall.SIGINT, syscall.SIGINT}, 130},
		"terminate": {[]os.Signal{syscall.SIGTERM}, 143},
		"hang up":   {[]os.Signal{syscall.SIGHUP}, 129},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script = func(s *supervisor) {
				s.publish(status(pod.Running, isRunning("app")))
				s.log("app", 0, "stdout F up")
				if grace := <-s.stops; grace != nil {
					t.Errorf("the first stop has a grace of %d s instead of the pod's", *grace)
				}
				if len(tc.signals) > 1 {
					if grace := <-s.stops; grace == nil || *grace != 0 {
						t.Errorf("the second stop is not at once")
					}
				}
				s.log("app", 0, "stdout F going")
				st := status(pod.Failed, terminated("app", 143, "Error", ""))
				st.Deleting = true
				s.end(st)
			}
			p := w.begin("", "up", w.file(oneContainer))
			p.says("up\n")
			for i, sig := range tc.signals {
				p.signals <- sig
				p.says([]string{"stopping pod web, for up to 7 s", "stopping at once"}[i])
			}
			got := p.wait()
			if got.code != tc.code || got.out != "up\ngoing\n" {
				t.Errorf("%+v", got)
			}
			if traces(w.dirs.Pod("default", "web")) {
				t.Error("the pod was not removed")
			}
		})
	}
}

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
	check(t, w.run("up", "-d", other), 1, "", "podrun: pod web is running already, made from a different manifest\nhint: podrun down web removes it\n")

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
hint: podrun ps and podrun logs web show why; podrun down web removes it
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

func TestUpJoinsARunningPod(t *testing.T) {
	w := newWorld(t)
	w.script = func(s *supervisor) {
		for range contextLines {
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
	if got.code != 130 || got.out != strings.Repeat("old\n", contextLines-1)+"recent\n" || !strings.Contains(got.err, "pod web goes on running") {
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

func TestUpRefusals(t *testing.T) {
	manifestError := `podrun: standard input is not a manifest that podrun can run
  standard input: document 1, line 9: spec.containers[0].imagee: unknown field (did you mean image?)
`
	bad := strings.Replace(oneContainer, "image:", "imagee:", 1)
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		with  func(*world)
		code  int
		err   string
	}{
		"no file":        {args: []string{"up"}, code: 2, err: "podrun: up takes the files of pods\nhint: podrun up --help\n"},
		"missing file":   {args: []string{"up", "nosuch.yaml"}, code: 2, err: "podrun: cannot read the manifest: open nosuch.yaml: no such file or directory\n"},
		"timeout alone":  {args: []string{"up", "--timeout", "1s", "-"}, code: 2, err: "podrun: --timeout is for -d: in the foreground, up ends with the pods\nhint: podrun up --help\n"},
		"bad manifest":   {args: []string{"up", "-"}, stdin: bad, code: 2, err: manifestError},
		"the same twice": {args: []string{"up", "-", "-f", "X"}, stdin: oneContainer, code: 2, err: "podrun: pod default/web is there twice: in X, document 1 and in standard input, document 1\n"},
		"this host": {
			args: []string{"up", "-"}, stdin: oneContainer, code: 125, err: "podrun: podrun cannot run pods here: there are no user namespaces\nhint: switch them on\n",
			with: func(w *world) {
				w.findings = []host.Finding{{Name: "user namespaces", Fatal: true, Detail: "there are no user namespaces", Cure: "switch them on"}}
			},
		},
		"limits": {
			args: []string{"up", "--require-limits", "-"}, stdin: oneContainer, code: 1,
			err: "podrun: limits cannot be enforced here, and --require-limits was given: cgroup v1\nhint: boot with v2\n",
			with: func(w *world) {
				w.findings = []host.Finding{{Name: limitsProbe, Detail: "cgroup v1", Cure: "boot with v2"}}
			},
		},
		"image": {
			args: []string{"up", "-"}, stdin: oneContainer, code: 1, err: "podrun: cannot use image busybox:1: it is not there\nhint: load it\n",
			with: func(w *world) { w.imageErr = report.New(report.Failure, "load it", "it is not there") },
		},
		"start": {
			args: []string{"up", "-"}, stdin: oneContainer, code: 1, err: "podrun: cannot start pod web: no more processes\n",
			with: func(w *world) { w.startErr = errors.New("no more processes") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.with != nil {
				tc.with(w)
			}
			for i, a := range tc.args {
				if a == "X" {
					tc.args[i] = w.file(oneContainer)
					tc.err = strings.ReplaceAll(tc.err, "in X", "in "+tc.args[i])
				}
			}
			check(t, w.begin(tc.stdin, tc.args...).wait(), tc.code, "", tc.err)
			if traces(w.dirs.Pod("default", "web")) {
				t.Error("something was left behind")
			}
		})
	}
}

// Two supervisors for one name must not be: the loser of the race is told.
func TestUpLosesTheLock(t *testing.T) {
	w := newWorld(t)
	p := w.dirs.Pod("default", "web")
	if err := os.MkdirAll(filepath.Dir(p.RuntimeDir()), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	check(t, w.run("up", w.file(oneContainer)), 1, "", "podrun: pod web is being started or removed by another podrun\nhint: wait until that is done\n")
}
