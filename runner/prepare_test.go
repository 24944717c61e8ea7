package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// early runs a pod whose init container waits at a fifo, and returns when it is known what
// has become of preparing its app.
func early(t *testing.T, app pod.Container, before func(*testPod)) (*testPod, *prepared, func()) {
	t.Helper()
	plan := withFifos(t, newPlan([]pod.Container{shell(app.Layers[0], "init", "cat /v/go")}, []pod.Container{app}), "go")
	p := prepare(t, plan)
	if before != nil {
		before(p)
	}
	p.begin()
	p.until("at its init container", func(st pod.Status) bool { return st.InitContainers[1].State.Running != nil })
	var got *prepared
	p.eventually("preparing its app", func([]pod.Event) bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		got = p.engine.pool.prepared[app.Name]
		return got != nil
	})
	select {
	case <-got.made:
	case <-time.After(time.Minute):
		t.Fatal("the app is not made within a minute")
	}
	return p, got, func() { wholePod{t: t, place: p.place}.release("go") }
}

// An app is made while an init container runs, of which nobody sees anything, and is the one
// that runs then.
func TestAppIsPreparedWhileInitRuns(t *testing.T) {
	testenv.NoLeaks(t)
	p, got, release := early(t, shell(layer(t), "app", "echo ran; exit 4"), nil)
	if got.x == nil {
		t.Fatal("it could not be made")
	}
	if st, ok := stat(got.x.PID); !ok || st.name != initName {
		t.Errorf("its process is %+v", st)
	}
	if _, err := os.Stat(p.place.LogFile("app", 0)); err == nil {
		t.Error("it has a log already")
	}
	if code, out := p.exec("app", "true"); code == 0 {
		t.Error("a command runs in it", out)
	}
	pid := got.x.PID
	release()
	st := p.ended()
	if c := st.Containers[0]; c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 4 {
		t.Errorf("it ended as %+v", c)
	}
	if out := p.log("app"); out != "ran\n" {
		t.Errorf("it wrote %q", out)
	}
	if got.x.PID != pid || got.x.waiting != nil {
		t.Error("another one ran")
	}
}

// What an app refers to has changed since it was prepared, or its process has been killed: it
// is made again.
func TestPreparedThatIsNotUpToDateIsMadeAgain(t *testing.T) {
	key := func(c pod.Container) pod.Container {
		c.Vars = []pod.EnvVar{{Name: "V", From: &pod.EnvRef{Key: &pod.KeyRef{Kind: pod.KindConfigMap, Name: "web", Key: "v"}}}}
		return c
	}
	put := func(p *testPod, value string) {
		p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"v": value}}})
	}
	for name, c := range map[string]struct {
		before func(*testPod)
		made   bool
		then   func(*testPod, *prepared)
		want   string
	}{
		"as it was": {func(p *testPod) { put(p, "1") }, true, func(*testPod, *prepared) {}, "1\n"},
		"changed":   {func(p *testPod) { put(p, "1") }, true, func(p *testPod, _ *prepared) { put(p, "2") }, "2\n"},
		"there now": {nil, false, func(p *testPod, _ *prepared) { put(p, "3") }, "3\n"},
		"killed": {func(p *testPod) { put(p, "4") }, true, func(_ *testPod, got *prepared) {
			if err := unix.Kill(got.x.PID, unix.SIGKILL); err != nil {
				t.Error(err)
			}
			for st, ok := stat(got.x.PID); ok && !st.ending; st, ok = stat(got.x.PID) {
				idle(time.Millisecond)
			}
		}, "4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			p, got, release := early(t, key(shell(layer(t), "app", "echo $V")), c.before)
			if (got.x != nil) != c.made {
				t.Errorf("made: %v", got.x != nil)
			}
			c.then(p, got)
			release()
			if st := p.ended(); st.Phase != pod.Succeeded {
				t.Errorf("the pod is %+v", st.Containers[0])
			}
			if out := p.log("app"); out != c.want {
				t.Errorf("it wrote %q, want %q", out, c.want)
			}
		})
	}
}

// Where an image's links lead a mount elsewhere, perhaps into another one, nothing is made there
// before its time.
func TestLinkedMountsAreNotPrepared(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := errors.Join(os.Mkdir(filepath.Join(l, "w"), 0o755), os.Symlink("w", filepath.Join(l, "v"))); err != nil {
		t.Fatal(err)
	}
	p, got, release := early(t, shell(l, "app", "echo ran"), nil)
	if got.x != nil {
		t.Error("it is made")
	}
	release()
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Errorf("the pod is %+v", st.Containers[0])
	}
	if out := p.log("app"); out != "ran\n" {
		t.Errorf("it wrote %q", out)
	}
}

// A pod that is stopped while an app is prepared never starts it, and nothing of it is left.
func TestStopWhilePrepared(t *testing.T) {
	testenv.NoLeaks(t)
	p, got, _ := early(t, shell(layer(t), "app", "echo ran"), nil)
	if got.x == nil {
		t.Fatal("it could not be made")
	}
	st := p.stop(0)
	if c := st.Containers[0]; c.State.Running != nil || c.ContainerID != "" {
		t.Errorf("it is %+v", c)
	}
	if _, err := os.Stat(p.place.LogFile("app", 0)); err == nil {
		t.Error("it has a log")
	}
	if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}

// An error in an app is told when it is to start, in the words that it always has.
func TestPreparedErrorsAreToldAtTheirTime(t *testing.T) {
	l := layer(t)
	for name, c := range map[string]struct {
		app          pod.Container
		reason, text string
	}{
		"no program": {func() pod.Container {
			x := shell(l, "app", "")
			x.Args = []string{"/nope"}
			return x
		}(), "StartError", "/nope"},
		"no user": {func() pod.Container {
			x := shell(l, "app", "")
			x.User = "nobody-here"
			return x
		}(), "CreateContainerConfigError", "nobody-here"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			p, _, release := early(t, c.app, nil)
			release()
			said := ""
			p.until("telling why", func(st pod.Status) bool {
				s := st.Containers[0].State
				switch {
				case s.Terminated != nil:
					said = s.Terminated.Reason + " " + s.Terminated.Message
				case s.Waiting != nil:
					said = s.Waiting.Reason + " " + s.Waiting.Message
				}
				return strings.Contains(said, c.reason)
			})
			if !strings.Contains(said, c.text) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// A supervisor that is killed while an app is prepared leaves it to the next one, which makes
// it anew; one that dozes leaves nothing. The app is started once.
func TestSupervisorsEndWhilePrepared(t *testing.T) {
	for _, doze := range []bool{false, true} {
		t.Run(fmt.Sprint("doze ", doze), func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_DOZE_AFTER", map[bool]string{false: "0", true: "50ms"}[doze])
			l := layer(t)
			w := startWhole(t, withFifos(t, newPlan([]pod.Container{shell(l, "init", "cat /v/go")}, []pod.Container{shell(l, "app", "echo ran; exit 4")}), "go"))
			w.until(func(st *pod.Status) bool { return st.InitContainers[1].State.Running != nil })
			supervisor, keeper := w.processes()
			made := filepath.Join(w.place.LibcontainerDir(), "app-0", "state.json")
			there := func() bool {
				_, err := os.Stat(made)
				return err == nil
			}
			if doze {
				w.asleep(keeper)
				if there() {
					t.Error("it is kept prepared while the pod dozes")
				}
			} else if carriedTrampoline() != nil { // else nothing is made early
				for deadline := time.Now().Add(time.Minute); !there() && time.Now().Before(deadline); {
					idle(time.Millisecond)
				}
				unix.Kill(supervisor, unix.SIGKILL)
			}
			w.release("go")
			st := w.final()
			if c := st.Containers[0]; c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 4 {
				t.Errorf("it ended as %+v", c)
			}
			if text := logText(t, w.place, "app", 0); text != "ran\n" {
				t.Errorf("it wrote %q", text)
			}
		})
	}
}
