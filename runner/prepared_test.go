package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/runner/prepared"
	"github.com/podrun/podrun/runner/sandbox"
)

// prepareApp runs a pod whose init container waits at a fifo, and returns when the preparation of its app has
// ended.
func prepareApp(t *testing.T, app pod.Container, before func(*testPod)) (*testPod, *prepared.Container, func()) {
	t.Helper()
	plan := withFifos(t, newPlan([]pod.Container{shell(app.Layers[0], "init", "cat /v/go")}, []pod.Container{app}), "go")
	p := prepare(t, plan)
	if before != nil {
		before(p)
	}
	p.begin()
	p.until("at its init container", func(st pod.Status) bool { return st.InitContainers[1].State.Running != nil })
	var got *prepared.Container
	p.eventually("preparing its app", func([]pod.Event) bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		got = p.engine.prepared.Containers[app.Name]
		return got != nil
	})
	select {
	case <-got.Made:
	case <-time.After(time.Minute):
		t.Fatal("the app is not made within a minute")
	}
	return p, got, func() { wholePod{t: t, place: p.place}.release("go") }
}

// An app is prepared while an init container runs, without being visible, and the prepared one runs then.
func TestAppIsPreparedWhileInitRuns(t *testing.T) {
	testenv.NoLeaks(t)
	p, got, release := prepareApp(t, shell(layer(t), "app", "echo ran; exit 4"), nil)
	if got.Instance == nil {
		t.Fatal("it could not be made")
	}
	p.eventually("waiting in the exec shim", func([]pod.Event) bool { // which sets its name as its first action
		st, ok := procfs.Lookup(got.Instance.PID)
		return ok && st.Comm == protocol.CommShim
	})
	if _, err := os.Stat(p.place.LogFile("app", 0)); err == nil {
		t.Error("it has a log already")
	}
	if code, out := p.exec("app", "true"); code == 0 {
		t.Error("a command runs in it", out)
	}
	pid := got.Instance.PID
	release()
	st := p.ended()
	if c := st.Containers[0]; c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 4 {
		t.Errorf("it ended as %+v", c)
	}
	if out := p.log("app"); out != "ran\n" {
		t.Errorf("it wrote %q", out)
	}
	if got.Instance.PID != pid || got.Instance.Pending != nil {
		t.Error("another one ran")
	}
}

// If an object that an app refers to has changed since it was prepared, or its process was killed, the app
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
		then   func(*testPod, *prepared.Container)
		want   string
	}{
		"as it was": {func(p *testPod) { put(p, "1") }, true, func(*testPod, *prepared.Container) {}, "1\n"},
		"changed":   {func(p *testPod) { put(p, "1") }, true, func(p *testPod, _ *prepared.Container) { put(p, "2") }, "2\n"},
		"there now": {nil, false, func(p *testPod, _ *prepared.Container) { put(p, "3") }, "3\n"},
		"killed": {func(p *testPod) { put(p, "4") }, true, func(_ *testPod, got *prepared.Container) {
			if err := unix.Kill(got.Instance.PID, unix.SIGKILL); err != nil {
				t.Error(err)
			}
			for st, ok := procfs.Lookup(got.Instance.PID); ok && !st.Exiting; st, ok = procfs.Lookup(got.Instance.PID) {
				idle(time.Millisecond)
			}
		}, "4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			p, got, release := prepareApp(t, key(shell(layer(t), "app", "echo $V")), c.before)
			if (got.Instance != nil) != c.made {
				t.Errorf("made: %v", got.Instance != nil)
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

// Where an image's links lead a mount elsewhere, perhaps into another mount, nothing is made early.
func TestLinkedMountsAreNotPrepared(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := errors.Join(os.Mkdir(filepath.Join(l, "w"), 0o755), os.Symlink("w", filepath.Join(l, "v"))); err != nil {
		t.Fatal(err)
	}
	p, got, release := prepareApp(t, shell(l, "app", "echo ran"), nil)
	if got.Instance != nil {
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
	p, got, _ := prepareApp(t, shell(layer(t), "app", "echo ran"), nil)
	if got.Instance == nil {
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

// An error in an app is reported when its start is due, with the usual message.
func TestPreparedErrorsAreReportedWhenDue(t *testing.T) {
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
			p, _, release := prepareApp(t, c.app, nil)
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

// A supervisor that is killed while an app is prepared leaves it to the next one, which makes it again; one
// that hibernates leaves nothing. The app is started once.
func TestSupervisorsEndWhilePrepared(t *testing.T) {
	for _, hibernate := range []bool{false, true} {
		t.Run(fmt.Sprint("hibernate ", hibernate), func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_HIBERNATE_AFTER", map[bool]string{false: "0", true: "50ms"}[hibernate])
			withShim(t) // without it nothing is made early
			l := layer(t)
			w := startWhole(t, withFifos(t, newPlan([]pod.Container{shell(l, "init", "cat /v/go")}, []pod.Container{shell(l, "app", "echo ran; exit 4")}), "go"))
			w.until(func(st *pod.Status) bool { return st.InitContainers[1].State.Running != nil })
			supervisor, podInit := w.processes()
			made := filepath.Join(w.place.LibcontainerDir(), "app-0", "state.json")
			there := func() bool {
				_, err := os.Stat(made)
				return err == nil
			}
			if hibernate {
				w.asleep(podInit)
				if there() {
					t.Error("it is kept prepared while the pod hibernates")
				}
			} else {
				for deadline := time.Now().Add(time.Minute); !hasChild(supervisor, protocol.CommShim); {
					if time.Now().After(deadline) {
						t.Fatal("it does not wait in the exec shim")
					}
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

// hasChild reports whether a process has a child with this name.
func hasChild(parent int, name string) bool {
	return slices.ContainsFunc(childrenOf(parent), func(pid int) bool {
		st, ok := procfs.Lookup(pid)
		return ok && st.Comm == name
	})
}

// The first containers are made while the network is, but not before the foundations exist, and their files
// contain the network's names once it is known. If the sandbox cannot be made nothing is left of them.
func TestFirstContainersAreMadeBesideTheNetwork(t *testing.T) {
	testenv.NoLeaks(t)
	app := shell(layer(t), "app", "echo ran")
	later := shell(app.Layers[0], "later", "echo ran")
	later.Vars = []pod.EnvVar{{Name: "IP", From: &pod.EnvRef{Field: "status.podIP"}}}
	plan := newPlan(nil, []pod.Container{app, later})
	p := prepare(t, plan)
	if err := p.place.Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, p.place)
	s := e.beginSandbox(0)
	s.RegisterUndo()
	e.prepare(lifecycle.Preparation{Starts: []lifecycle.Action{{Kind: lifecycle.StartContainer, Container: "app"}, {Kind: lifecycle.StartContainer, Container: "later"}}, First: 2})
	got := e.prepared.Containers["app"]
	if got == nil || e.prepared.Containers["later"] != nil {
		t.Fatalf("prepared are %v", e.prepared.Containers)
	}
	select {
	case <-got.Made:
		t.Error("it is made of nothing")
	default:
	}
	if err := sandbox.RunSteps(s.FoundationSteps()); err != nil {
		t.Fatal(err)
	}
	close(s.FoundationsDone)
	select {
	case <-got.Made:
	case <-time.After(time.Minute):
		t.Fatal("it is not made within a minute")
	}
	if got.Instance == nil {
		t.Fatal("it could not be made")
	}
	if err := s.WriteNameFiles(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/etc/hosts", got.Instance.PID)); err != nil || string(b) != network.HostsFile(plan, nil) {
		t.Errorf("the waiting pod has hosts %q: %v", b, err)
	}
	pid := got.Instance.PID
	e.abandonSandbox()
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("it still waits: %v", err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{p.place.RootfsDir(), p.place.LibcontainerDir(), s.Dir} {
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
	e.prepare(lifecycle.Preparation{Starts: []lifecycle.Action{{Kind: lifecycle.StartContainer, Container: "app"}}})
	if len(e.prepared.Containers) > 0 {
		t.Error("something is prepared without a sandbox")
	}
}

// A pod whose sandbox cannot be connected fails with the usual message, even if other steps fail too; no
// containers exist.
func TestFirstStartWithoutNetwork(t *testing.T) {
	for name, volumes := range map[string][]pod.Volume{
		"all else is there": nil,
		"nor are volumes":   {{Name: "v", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "none"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			testenv.LoopbackUp(t)
			taken, err := net.Listen("tcp", "127.0.0.1:8080")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			plan := newPlan(nil, []pod.Container{shell(layer(t), "app", "echo ran")})
			plan.Volumes = volumes
			plan.Ports = []pod.Port{{Container: "app", Protocol: "TCP", Number: 80, HostPort: 8080}}
			p := start(t, plan)
			st := p.ended()
			if st.Phase != pod.Failed || !strings.Contains(st.Message, "8080") {
				t.Errorf("the pod is %s: %s", st.Phase, st.Message)
			}
			if c := st.Containers[0]; c.ContainerID != "" || c.State.Running != nil {
				t.Errorf("it is %+v", c)
			}
			if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
				t.Errorf("%v %v is left", left, err)
			}
		})
	}
}

// The next container does not wait for the removal of the ended one; the pod's end does.
func TestNextContainerDoesNotWaitForRemoval(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	one, two := shell(l, "one", "cat /v/one"), shell(l, "two", "cat /v/two")
	plan := withFifos(t, newPlan([]pod.Container{one, two}, []pod.Container{shell(l, "app", "exit 0")}), "one", "two")
	p := start(t, plan)
	w := wholePod{t: t, place: p.place}
	p.until("at its first init container", func(st pod.Status) bool { return st.InitContainers[1].State.Running != nil })
	removing, held := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(held) })
	defer goOn()
	p.engine.mu.Lock()
	first := p.engine.instances["one"].container
	first.Cleanup.Push("take long", func() error {
		close(removing)
		<-held
		return nil
	})
	p.engine.mu.Unlock()
	w.release("one")
	<-removing
	p.until("at its second init container", func(st pod.Status) bool { return st.InitContainers[2].State.Running != nil })
	if _, err := os.Stat(first.Rootfs(p.engine.sandbox)); err != nil {
		t.Error("it is removed already:", err)
	}
	// The supervisor that follows one killed now would find it in this state.
	if x := container.Leftover(p.engine.sandbox, &one, 0); x.Libcontainer == nil {
		t.Error("what libcontainer knows of it, its cgroup above all, would be left")
	}
	w.release("two")
	p.until("at its app", func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil })
	goOn()
	p.ended()
	if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}
