package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func stopped() pod.Status {
	st := status(pod.Failed, terminated("app", 143, "Error", ""))
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
			w := newWorld(t)
			s := w.upDetached(oneContainer, nil)
			for i := range tc.args {
				if tc.args[i] == "FILE" {
					// It may have become invalid meanwhile.
					tc.args[i] = w.file(strings.Replace(oneContainer, "busybox:1", "", 1))
				}
			}
			go func() {
				grace := <-s.stops
				if (grace == nil) != (tc.grace == nil) || grace != nil && *grace != *tc.grace {
					t.Errorf("asked for a stop with grace %v, want %v", grace, tc.grace)
				}
				s.end(stopped())
			}()
			check(t, w.run(tc.args...), 0, "pod/web deleted\n", "")
			if s.pod.HasRemains() {
				t.Error("the pod was not removed")
			}
			if !s.leaving.Load() {
				t.Error("the supervisor was not told that the pod is removed next")
			}
			check(t, w.run("down", "web"), 1, "", "podrun: pod \"web\" not found\nhint: podrun ps lists the pods\n")
		})
	}
}

// What a pod that is only stopped leaves is kept for after a power cut.
func TestStopKeepsThePod(t *testing.T) {
	w := newWorld(t)
	s := w.upDetached(oneContainer, nil)
	go func() {
		<-s.stops
		s.end(stopped())
	}()
	check(t, w.run("stop", "web"), 0, "pod/web stopped\n", "")
	if s.leaving.Load() || !s.pod.Exists() {
		t.Error("the pod was to be removed")
	}
}

// What is left of a pod is removed, however it ended.
func TestDownOfRemains(t *testing.T) {
	for name, leave := range map[string]func(*world, *supervisor){
		"it ended":       func(_ *world, s *supervisor) { s.end(stopped()) },
		"it was killed":  func(_ *world, s *supervisor) { s.kill() },
		"after a reboot": func(_ *world, s *supervisor) { s.kill(); os.RemoveAll(s.pod.RuntimeDir()) },
		"half made":      func(_ *world, s *supervisor) { s.kill(); os.Remove(s.pod.DataDir() + "/plan.json") },
		"only a lock":    func(_ *world, s *supervisor) { s.kill(); os.RemoveAll(s.pod.DataDir()) },
		"a damaged plan": func(_ *world, s *supervisor) {
			s.kill()
			os.WriteFile(s.pod.DataDir()+"/plan.json", []byte("{"), 0o600)
		},
		"a damaged status": func(_ *world, s *supervisor) { s.kill(); os.WriteFile(s.pod.RuntimeDir()+"/status.json", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.upDetached(oneContainer, nil)
			leave(w, s)
			check(t, w.run("down", "web"), 0, "pod/web deleted\n", "")
			if s.pod.HasRemains() {
				t.Error("the pod was not removed")
			}
		})
	}
}

func TestDownRefusals(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		args string
		code int
		err  string
	}{
		"nothing":        {"down", 2, "podrun: down takes the names of pods, --selector or --all, or -f and a file\nhint: podrun down --help\n"},
		"both":           {"down web -f x", 2, "podrun: down takes either names or -f, not both\nhint: podrun down --help\n"},
		"negative grace": {"down web --grace-period -3", 2, "podrun: --grace-period must not be negative\nhint: podrun down --help\n"},
		"no number":      {"down web --grace-period=x", 2, "podrun: option --grace-period cannot be \"x\": it takes a whole number\nhint: podrun down --help\n"},
		"neither":        {"down web --force=x", 2, "podrun: option --force cannot be \"x\": it takes true or false\nhint: podrun down --help\n"},
		"force, patient": {"down web --force --grace-period 3", 2, "podrun: --force ends the pod at once: it allows no --grace-period but 0\nhint: podrun down --help\n"},
		"unknown":        {"down web other", 1, "podrun: pod \"web\" not found\npodrun: pod \"other\" not found\nhint: podrun ps lists the pods\n"},
		"path":           {"down ../x", 1, "podrun: pod \"../x\" not found\nhint: podrun ps lists the pods\n"},
	} {
		t.Run(name, func(t *testing.T) { check(t, w.run(strings.Fields(tc.args)...), tc.code, "", tc.err) })
	}
}

// As with kubectl delete, a pod that is not there keeps nobody from removing another.
func TestDownRemovesWhatIsThere(t *testing.T) {
	w := newWorld(t)
	s := w.upDetached(oneContainer, nil)
	s.end(stopped())
	check(t, w.run("down", "other", "web"), 1, "pod/web deleted\n", "podrun: pod \"other\" not found\nhint: podrun ps lists the pods\n")
	if s.pod.HasRemains() {
		t.Error("the pod was not removed")
	}
}

// A supervisor that listens and never answers is killed by --force, and only then.
func TestDownForceKillsADeafSupervisor(t *testing.T) {
	if os.Getenv("PODRUN_TEST_DEAF") != "" {
		deaf()
	}
	w := newWorld(t)
	w.upDetached(oneContainer, nil).end(stopped())
	p := w.dirs.Pod("default", "web")
	cmd := exec.Command(os.Args[0], "-test.run=^TestDownForceKillsADeafSupervisor$")
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(os.Environ(), "PODRUN_TEST_DEAF="+w.dirs.Data+":"+w.dirs.Runtime)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { cmd.Wait(); close(reaped) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-reaped })
	eventually(t, "it listens", func() bool {
		conn, err := p.Dial()
		if err == nil {
			conn.Close()
		}
		return err == nil && p.Alive()
	})
	got := w.run("down", "--force", "web")
	if got.code != 0 || !strings.Contains(got.err, "the supervisor of pod web does not answer: killing it") {
		t.Errorf("%+v", got)
	}
}

// deaf is the process of a supervisor that has the lock and accepts nobody.
func deaf() {
	data, runtime, _ := strings.Cut(os.Getenv("PODRUN_TEST_DEAF"), ":")
	p := store.Dirs{Data: data, Runtime: runtime}.Pod("default", "web")
	if _, err := p.Lock(); err != nil {
		panic(err)
	}
	if _, err := p.Listen(); err != nil {
		panic(err)
	}
	select {}
}

// systemd would start a unit's pod again: what ends it for good is said.
func TestDownOfAUnitsPod(t *testing.T) {
	w := newWorld(t)
	s := w.upDetached(oneContainer, nil)
	if err := w.dirs.SetUnitPods("podrun@web.service", []store.Pod{w.dirs.Pod("default", "other"), s.pod}); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-s.stops
		s.end(stopped())
	}()
	systemctl := "systemctl --user"
	if os.Geteuid() == 0 {
		systemctl = "systemctl"
	}
	check(t, w.run("down", "web"), 0, "pod/web deleted\n",
		"podrun: pod web belongs to podrun@web.service, which may start it again; "+systemctl+" stop podrun@web.service ends both\n")
}
