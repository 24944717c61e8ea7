package podaction_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

func stopped() pod.Status {
	st := clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 143, "Error", ""))
	st.Deleting = true
	return st
}

func TestDown(t *testing.T) {
	five, none := int64(5), int64(0)
	for name, tc := range map[string]struct {
		args  []string
		grace *int64
	}{
		"its own grace": {[]string{"down", "web"}, nil},
		"a grace":       {[]string{"down", "web", "--grace-period", "5"}, &five},
		"no grace":      {[]string{"down", "--grace-period=0", "web"}, &none},
		"force":         {[]string{"down", "web", "--force"}, &none},
		"twice named":   {[]string{"down", "web", "pod/web"}, nil},
		"by file":       {[]string{"down", "-f", "FILE"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			s := h.UpDetached(clitest.OneContainer, nil)
			for i := range tc.args {
				if tc.args[i] == "FILE" {
					// It may have become invalid meanwhile.
					tc.args[i] = h.File(strings.Replace(clitest.OneContainer, "busybox:1", "", 1))
				}
			}
			go func() {
				grace := <-s.Stops
				if (grace == nil) != (tc.grace == nil) || grace != nil && *grace != *tc.grace {
					t.Errorf("asked for a stop with grace %v, want %v", grace, tc.grace)
				}
				s.End(stopped())
			}()
			clitest.CheckResult(t, h.Run(tc.args...), 0, "pod/web deleted\n", "")
			if s.Pod.HasRemains() {
				t.Error("the pod was not removed")
			}
			if !s.RemoveRequested.Load() {
				t.Error("the supervisor was not told that the pod is removed next")
			}
			clitest.CheckResult(t, h.Run("down", "web"), 1, "", "podrun: pod \"web\" not found\nhint: podrun ps lists the pods\n")
		})
	}
}

// TestStopKeepsThePod checks that stop keeps the pod's files, which start and a reboot need.
func TestStopKeepsThePod(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	go func() {
		<-s.Stops
		s.End(stopped())
	}()
	clitest.CheckResult(t, h.Run("stop", "web"), 0, "pod/web stopped\n", "")
	if s.RemoveRequested.Load() || !s.Pod.Exists() {
		t.Error("the pod was to be removed")
	}
}

// TestDownOfRemains checks that down removes the files of a pod without a supervisor.
func TestDownOfRemains(t *testing.T) {
	for name, leave := range map[string]func(*clitest.Host, *clitest.Supervisor){
		"it ended":       func(_ *clitest.Host, s *clitest.Supervisor) { s.End(stopped()) },
		"it was killed":  func(_ *clitest.Host, s *clitest.Supervisor) { s.Kill() },
		"after a reboot": func(_ *clitest.Host, s *clitest.Supervisor) { s.Kill(); os.RemoveAll(s.Pod.RuntimeDir()) },
		"half made":      func(_ *clitest.Host, s *clitest.Supervisor) { s.Kill(); os.Remove(s.Pod.DataDir() + "/plan.json") },
		"only a lock":    func(_ *clitest.Host, s *clitest.Supervisor) { s.Kill(); os.RemoveAll(s.Pod.DataDir()) },
		"a damaged plan": func(_ *clitest.Host, s *clitest.Supervisor) {
			s.Kill()
			os.WriteFile(s.Pod.DataDir()+"/plan.json", []byte("{"), 0o600)
		},
		"a damaged status": func(_ *clitest.Host, s *clitest.Supervisor) {
			s.Kill()
			os.WriteFile(s.Pod.RuntimeDir()+"/status.json", nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			s := h.UpDetached(clitest.OneContainer, nil)
			leave(h, s)
			clitest.CheckResult(t, h.Run("down", "web"), 0, "pod/web deleted\n", "")
			if s.Pod.HasRemains() {
				t.Error("the pod was not removed")
			}
		})
	}
}

func TestDownRefusals(t *testing.T) {
	h := clitest.NewHost(t)
	for name, tc := range map[string]struct {
		args string
		code int
		err  string
	}{
		"nothing":        {"down", 2, "podrun: down requires the names of pods, --selector or --all, or -f and a file\nhint: podrun down --help\n"},
		"both":           {"down web -f x", 2, "podrun: down requires either names or -f, not both\nhint: podrun down --help\n"},
		"negative grace": {"down web --grace-period -3", 2, "podrun: --grace-period must not be negative\nhint: podrun down --help\n"},
		"no number":      {"down web --grace-period=x", 2, "podrun: option --grace-period cannot be \"x\": use a whole number\nhint: podrun down --help\n"},
		"neither":        {"down web --force=x", 2, "podrun: option --force cannot be \"x\": use true or false\nhint: podrun down --help\n"},
		"force, patient": {"down web --force --grace-period 3", 2, "podrun: --force and --grace-period greater than 0 cannot be specified together\nhint: podrun down --help\n"},
		"unknown":        {"down web other", 1, "podrun: pod \"web\" not found\npodrun: pod \"other\" not found\nhint: podrun ps lists the pods\n"},
		"path":           {"down ../x", 1, "podrun: pod \"../x\" not found\nhint: podrun ps lists the pods\n"},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckResult(t, h.Run(strings.Fields(tc.args)...), tc.code, "", tc.err) })
	}
}

// TestDownRemovesTheOthers checks that a missing pod does not prevent the removal of others, as with kubectl
// delete.
func TestDownRemovesTheOthers(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	s.End(stopped())
	clitest.CheckResult(t, h.Run("down", "other", "web"), 1, "pod/web deleted\n", "podrun: pod \"other\" not found\nhint: podrun ps lists the pods\n")
	if s.Pod.HasRemains() {
		t.Error("the pod was not removed")
	}
}

// TestDownForceKillsUnresponsiveSupervisor checks that only --force kills a supervisor that does not
// answer, and that it accepts that the pod ends by itself at that moment.
func TestDownForceKillsUnresponsiveSupervisor(t *testing.T) {
	for name, supervisor := range map[string]func(l *net.UnixListener, socket string){
		"hangs": func(*net.UnixListener, string) { select {} },
		"ends": func(l *net.UnixListener, socket string) {
			conn, err := l.Accept()
			if err != nil {
				panic(err)
			}
			os.Remove(socket)
			io.Copy(io.Discard, conn)
			time.AfterFunc(time.Second, func() { os.Exit(0) }) // after down has looked for the socket
			select {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const env = "PODRUN_TEST_UNRESPONSIVE"
			if dirs := os.Getenv(env); dirs != "" {
				data, runtime, _ := strings.Cut(dirs, ":")
				p := store.Dirs{Data: data, Runtime: runtime}.Pod("default", "web")
				lock, err := p.Lock()
				if err != nil {
					panic(err)
				}
				defer lock.Close() // an unused file is closed by the garbage collection
				l, err := p.Listen()
				if err != nil {
					panic(err)
				}
				supervisor(l, filepath.Join(p.RuntimeDir(), "control.sock"))
			}
			h := clitest.NewHost(t)
			h.UpDetached(clitest.OneContainer, nil).End(stopped())
			p := h.Dirs.Pod("default", "web")
			cmd := exec.Command(os.Args[0], "-test.run=^TestDownForceKillsUnresponsiveSupervisor$/^"+name+"$")
			cmd.Path = "/proc/self/exe"
			cmd.Env = append(os.Environ(), env+"="+h.Dirs.Data+":"+h.Dirs.Runtime)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			reaped := make(chan struct{})
			go func() { cmd.Wait(); close(reaped) }()
			t.Cleanup(func() { cmd.Process.Kill(); <-reaped })
			clitest.Eventually(t, "it listens", func() bool {
				_, err := os.Stat(filepath.Join(p.RuntimeDir(), "control.sock"))
				return err == nil && p.Alive()
			})
			got := h.Run("down", "--force", "web")
			if got.Code != 0 || !strings.Contains(got.Err, "the supervisor of pod web does not answer: killing it") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestDownOfAUnitsPod checks that down warns that systemd starts the pod again, and names the command that
// prevents it.
func TestDownOfAUnitsPod(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	if err := h.Dirs.SetUnitPods("podrun@web.service", []store.Pod{h.Dirs.Pod("default", "other"), s.Pod}); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-s.Stops
		s.End(stopped())
	}()
	systemctl := "systemctl --user"
	if os.Geteuid() == 0 {
		systemctl = "systemctl"
	}
	clitest.CheckResult(t, h.Run("down", "web"), 0, "pod/web deleted\n",
		"podrun: pod web belongs to podrun@web.service, which may start it again; "+systemctl+" stop podrun@web.service stops both\n")
}
