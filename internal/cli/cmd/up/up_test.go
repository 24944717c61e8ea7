package up_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
)

func TestUpShowsOneContainerAsItIs(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
		s.Log("app", 0, "stdout F hello", "stderr P no new", "stderr P line")
		s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	}
	clitest.CheckResult(t, h.Run("up", h.File(clitest.OneContainer)), 0, "hello\nno newline", "")
}

func TestUpPrefixesSeveralContainers(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("prepare", 0, "stdout F prepared", "stdout P half a ")
		s.Log("prepare", 0, "stdout F line")
		s.Log("app", 0, "stdout F one", "stdout P end")
		s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", ""), clitest.TerminatedContainer("log-shipper", 0, "Completed", "")))
	}
	// Though all of it is there at once, an init container speaks before those that
	// start after it.
	clitest.CheckResult(t, h.Run("up", h.File(clitest.ThreeContainers)), 0, "prepare | prepared\nprepare | half a line\napp | one\napp | end\n", "")
}

func TestUpColoursContainers(t *testing.T) {
	h := clitest.NewHost(t)
	h.Env["CLICOLOR_FORCE"] = "1"
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F one")
		s.End(clitest.Status(pod.Succeeded))
	}
	clitest.CheckResult(t, h.Run("up", h.File(clitest.ThreeContainers)), 0, "\x1b[33mapp         |\x1b[0m one\n", "")
}

func TestUpFollowsRestarts(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F first")
		crash := clitest.WaitingContainer("app", "CrashLoopBackOff", "back-off 10s restarting failed container=app")
		crash.RestartCount = 1
		s.Publish(clitest.Status(pod.Running, clitest.TerminatedContainer("app", 3, "Error", "")))
		s.Publish(clitest.Status(pod.Running, crash))
		s.Log("app", 1, "stdout F second")
		s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	}
	got := h.Run("up", h.File(strings.Replace(clitest.OneContainer, "Never", "OnFailure", 1)))
	if got.Code != 0 || got.Out != "first\nsecond\n" {
		t.Errorf("%+v", got)
	}
}

func TestUpSaysWhyThePodFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		end  pod.Status
		want string
	}{
		"exit code": {clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 3, "Error", "")), "container app exited with code 3"},
		"message":   {clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 3, "Error", "no\x1b[2J disk\n")), `container app exited with code 3: no\u001b[2J disk`},
		"OOM":       {clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 137, "OOMKilled", "")), "container app ended with OOMKilled (exit code 137)"},
		"no start":  {clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 127, "StartError", "no such program")), "container app cannot be started: no such program"},
		"the pod's": {pod.Status{Phase: pod.Failed, Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline"},
			"DeadlineExceeded: Pod was active on the node longer than the specified deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			h.Script = func(s *clitest.Supervisor) { s.End(tc.end) }
			got := h.Run("up", h.File(clitest.OneContainer))
			want := "podrun: pod web failed: " + tc.want + "\nhint: podrun logs web shows its output, podrun down web removes it\n"
			if got.Code != 1 || !strings.HasSuffix(got.Err, want) {
				t.Errorf("%+v", got)
			}
			if _, err := h.Dirs.Pod("default", "web").Plan(); err != nil {
				t.Errorf("the record of the pod is gone: %v", err)
			}
		})
	}
}

func TestUpSaysWarningsOnce(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		st := clitest.Status(pod.Running, clitest.RunningContainer("app"))
		st.Warnings = []string{"limits are not enforced: no cgroup"}
		s.Publish(st)
		st.Phase = pod.Succeeded
		s.End(st)
	}
	clitest.CheckResult(t, h.Run("up", h.File(clitest.OneContainer)), 0, "", "podrun: pod web: warning: limits are not enforced: no cgroup\n")
}

func TestUpSupervisorKilled(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
		s.Log("app", 0, "stdout F the last word")
		s.Kill()
	}
	got := h.Run("up", h.File(clitest.OneContainer))
	if got.Code != 1 || got.Out != "the last word\n" || !strings.Contains(got.Err, "killed from outside") {
		t.Errorf("%+v", got)
	}
}

func TestUpJoinsARunningPod(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		for range podview.ContextLines {
			s.Log("app", 0, "stdout F old")
		}
		s.Log("app", 0, "stdout F recent")
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
	}
	file := h.File(clitest.OneContainer)
	if got := h.Run("up", "-d", file); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	p := h.Begin("", "up", file)
	p.WaitOutput("recent\n")
	p.Signals <- syscall.SIGINT
	got := p.Wait()
	if got.Code != 130 || got.Out != strings.Repeat("old\n", podview.ContextLines-1)+"recent\n" || !strings.Contains(got.Err, "pod web keeps running") {
		t.Errorf("%+v", got)
	}
	if !h.Dirs.Pod("default", "web").Alive() {
		t.Error("the pod that ran before was stopped")
	}
}

func TestUpSeveralPods(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F I am "+s.Pod.Name)
		if s.Pod.Name == "bad" {
			s.End(clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 1, "Error", "")))
			return
		}
		s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	}
	bad := strings.Replace(clitest.OneContainer, "name: web", "name: bad", 1)
	got := h.Run("up", h.File(clitest.OneContainer+"---"+bad))
	if got.Code != 1 || !strings.Contains(got.Out, "web/app | I am web\n") || !strings.Contains(got.Out, "bad/app | I am bad\n") ||
		!strings.Contains(got.Err, "pod bad failed") || strings.Contains(got.Err, "pod web failed") {
		t.Errorf("%+v", got)
	}
}

// TestUpCannotWrite checks that a failed write of the output is reported while the pod runs.
func TestUpCannotWrite(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F hello")
		s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
	}
	got := h.BeginWith(strings.NewReader(""), full, "up", h.File(clitest.OneContainer)).Wait()
	if got.Code != 1 || !strings.Contains(got.Err, "cannot show the output of pod web, which keeps running: write /dev/full: no space left on device") {
		t.Errorf("%+v", got)
	}
}

// TestUpOnATerminal checks that on a terminal every line has a coloured prefix, and that output of containers
// cannot control the terminal.
func TestUpOnATerminal(t *testing.T) {
	for term, want := range map[string]string{
		"xterm": "\x1b[36mapp |\x1b[0m \x1b[1mbold\x1b[0m\\u001b[2J\x1b[0m\r\n",
		"dumb":  "app | \x1b[1mbold\x1b[0m\\u001b[2J\x1b[0m\r\n",
	} {
		user, terminal := clitest.OpenTerminal(t)
		var shown clitest.Buffer
		go io.Copy(&shown, user)
		h := clitest.NewHost(t)
		h.Env["TERM"] = term
		h.Script = func(s *clitest.Supervisor) {
			s.Log("app", 0, "stdout F \x1b[1mbold\x1b[0m\x1b[2J")
			s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
		}
		if got := h.BeginWith(strings.NewReader(""), terminal, "up", h.File(clitest.OneContainer)).Wait(); got.Code != 0 || got.Err != "" {
			t.Errorf("%+v", got)
		}
		clitest.WaitFor(t, &shown, "\n")
		if shown.String() != want {
			t.Errorf("TERM=%s: %q, want %q", term, shown.String(), want)
		}
	}
}
