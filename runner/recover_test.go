package runner

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/runner/handoff"
)

// Supervisors that die one after the other do not spin: later ones start with growing delays, which the log
// reports, and the containers keep running. A stop during a delay works.
func TestSupervisorsThatDieInALoop(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "0")
	w := startWhole(t, withFifos(t, newPlan(nil, []pod.Container{shell(layer(t), "a", obedient)}), "never"))
	w.until(running)
	w.release("never")
	_, podInit := w.processes()
	said := func() string {
		b, _ := os.ReadFile(w.place.SupervisorLog())
		return string(b)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(said(), "restarting in 0.8 s"); {
		if pid := supervisorOf(podInit); pid != 0 {
			unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pod init does not wait longer and longer: %s", said())
		}
	}
	if n := strings.Count(said(), "restarting in 0.0 s"); n != 5 {
		t.Errorf("%d supervisors began at once, want 5: %s", n, said())
	}
	if err := unix.Kill(podInit, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if c := w.final().Containers[0]; c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 3 {
		t.Errorf("the container ended as %+v", c)
	}
}

// A supervisor that hangs can be replaced through pod init.
func TestPodInitReplacesTheSupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "0")
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	hangs, podInit := w.processes()
	if err := unix.Kill(hangs, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for st, ok := procfs.Lookup(hangs); ok && st.State != 'T'; { // stopped: from here on it answers no client
		st, ok = procfs.Lookup(hangs)
	}
	if err := unix.Kill(podInit, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 0 })
	if now, _ := w.processes(); now == hangs {
		t.Error("it is the same supervisor")
	}
}

// damages are ways in which a faulty disk or another program damages a file.
var damages = map[string]func(string) error{
	"gone":    os.Remove,
	"empty":   func(path string) error { return os.Truncate(path, 0) },
	"garbled": func(path string) error { return os.WriteFile(path, []byte("{{{{"), 0o600) },
	"half":    func(path string) error { return os.Truncate(path, 40) },
}

// TestDamagedPlanEndsThePod: no supervisor can run a pod without its Plan. One after another would die, and
// the pod could not even be stopped.
func TestDamagedPlanEndsThePod(t *testing.T) {
	for name, damage := range damages {
		if name == "gone" { // then there is no pod to be removed either
			continue
		}
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w, _ := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
			if err := damage(filepath.Join(w.place.DataDir(), "plan.json")); err != nil {
				t.Fatal(err)
			}
			w.dial().Close()
			w.final()
			if b, err := os.ReadFile(w.place.SupervisorLog()); err != nil || !bytes.Contains(b, []byte("read plan of pod")) {
				t.Errorf("it does not say why: %s %v", b, err)
			}
		})
	}
}

// TestDamagedContainerIsRestarted: libcontainer's state of one container is lost. The other one keeps
// running.
func TestDamagedContainerIsRestarted(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			l := layer(t)
			plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
			plan.RestartPolicy = pod.RestartAlways
			w, _ := hibernated(t, plan)
			if err := damage(filepath.Join(w.place.LibcontainerDir(), "a-0", "state.json")); err != nil {
				t.Fatal(err)
			}
			w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
			if code, out := w.ask("a", "true"); code != 0 {
				t.Error(out)
			}
			w.until(func(st *pod.Status) bool {
				if n := st.Containers[1].RestartCount; n != 0 {
					t.Errorf("%d restarts of the other", n)
				}
				return true
			})
		})
	}
}

// TestAskingOutlivesTheSupervisor: probes continue when a supervisor is killed during one, a preStop hook
// runs again, and nothing is restarted.
func TestAskingOutlivesTheSupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "touch /tmp/well; trap 'echo bye; exit 0' TERM; while true; do sleep 0.1; done")
	c.Readiness = probed(execHandler("echo asked > /proc/1/fd/1; sleep 0.2; test -f /tmp/well"))
	c.PreStop = new(execHandler("echo hook > /proc/1/fd/1; sleep 2"))
	plan := newPlan(nil, []pod.Container{c})
	plan.GraceSeconds = 60
	w := startWhole(t, plan)
	w.until((*pod.Status).Ready)
	supervisor, podInit := w.processes()
	for range 3 {
		w.logged("asked", strings.Count(w.output(), "asked")+1)
		supervisor = w.killSupervisor(supervisor, podInit)
	}
	w.until(func(st *pod.Status) bool {
		if n := st.Containers[0].RestartCount; n != 0 {
			t.Errorf("%d restarts", n)
		}
		return st.Ready()
	})
	if code, out := w.ask("a", "rm", "/tmp/well"); code != 0 {
		t.Fatal(out)
	}
	w.until(func(st *pod.Status) bool { return !st.Ready() })

	conn := w.dial()
	defer conn.Close()
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{}}); err != nil {
		t.Fatal(err)
	}
	w.logged("hook", 1)
	supervisor, podInit = w.processes()
	w.killSupervisor(supervisor, podInit)
	w.logged("hook", 2)
	w.logged("bye", 1)
}

// stdout is a crilog.Sink that collects stdout.
type stdout struct{ strings.Builder }

func (s *stdout) Entry(e crilog.Entry) error {
	if e.Stream == "stdout" {
		s.Write(e.Text)
		if !e.Partial {
			s.WriteByte('\n')
		}
	}
	return nil
}

func (*stdout) Flush() error { return nil }

// stdoutOf returns what a container's first instance has written.
func stdoutOf(t interface{ Fatal(...any) }, place store.Pod, container string) string {
	var s stdout
	if err := crilog.Read(place.LogDir(container), 0, crilog.All, &s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func (w wholePod) output() string { return stdoutOf(w.t, w.place, "a") }

// logged waits until container a has logged a word so many times.
func (w wholePod) logged(word string, times int) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); strings.Count(w.output(), word) < times; {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %d times %q within a minute, but %q", times, word, w.output())
		}
	}
}

// killSupervisor kills a supervisor and waits for the next one.
func (w wholePod) killSupervisor(supervisor, podInit int) (next int) {
	w.t.Helper()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if next = supervisorOf(podInit); next != 0 && next != supervisor {
			return next
		}
	}
	w.t.Fatal("no supervisor follows the killed one")
	return 0
}

// A container with such a restart rule restarts all of the pod: the other containers are killed at once,
// without their grace period, and everything starts again in the same sandbox.
func TestRestartAllContainers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	i, s := shell(l, "i", "echo run >> /v/runs"), shell(l, "s", "trap '' TERM; exec sleep 1000")
	a, b := shell(l, "a", "[ $(grep -c . /v/runs) = 2 ] && exec sleep 1000; exit 42"), shell(l, "b", "trap '' TERM; exec sleep 1000")
	i.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	a.Mounts, s.Sidecar = i.Mounts, true
	a.RestartPolicy = pod.RestartNever
	a.RestartRules = []pod.RestartRule{{ExitCodes: []int{42}, All: true}}
	plan := newPlan([]pod.Container{i, s}, []pod.Container{a, b})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	restarting := false
	st := p.until("running again", func(st pod.Status) bool {
		for _, c := range st.Conditions {
			restarting = restarting || c.Type == "AllContainersRestarting" && c.Status == "True"
		}
		return st.Containers[0].RestartCount == 1 && allRunning(st.Containers)
	})
	if !restarting {
		t.Error("no status says that all containers are being restarted")
	}
	for _, c := range append(st.InitContainers, st.Containers...) {
		if c.RestartCount != 1 {
			t.Errorf("container %s was restarted %d times", c.Name, c.RestartCount)
		}
	}
	if end := st.Containers[1].LastState.Terminated; end == nil || end.Reason != "RestartingAllContainers" || end.ExitCode != 137 {
		t.Errorf("the container that was killed has ended as %+v", end)
	}
	if end := st.Containers[0].LastState.Terminated; end == nil || end.ExitCode != 42 {
		t.Errorf("the container that was the cause has ended as %+v", end)
	}
	if text, err := os.ReadFile(filepath.Join(p.place.VolumesDir(), "v", "runs")); err != nil || string(text) != "run\nrun\n" {
		t.Errorf("the init container has run %q: %v", text, err)
	}
}

// beginWhole starts a pod's processes while record records the pod.
func (w wholePod) beginWhole(plan *pod.Plan, record func() error) error {
	w.t.Helper()
	lock, err := w.place.Lock()
	if err != nil {
		w.t.Fatal(err)
	}
	defer lock.Close()
	return podinit.Start(podinit.Options{
		Programs: podinit.Programs{Pod: "/proc/self/exe", Supervisor: "/proc/self/exe", Netstack: "/proc/self/exe"},
		Dirs:     w.dirs, Pod: w.place, Hostname: plan.Hostname, Lock: lock, Record: record,
	})
}

// wholeAt returns the place of a pod that does not exist yet.
func wholeAt(t *testing.T, plan *pod.Plan) wholePod {
	root := t.TempDir()
	w := wholePod{t: t, dirs: store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}}
	w.place = w.dirs.Pod(plan.Namespace, plan.Name)
	if err := os.Mkdir(w.dirs.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// The pod is recorded while its processes start, and its supervisor waits for that.
func TestSupervisorAwaitsRecord(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	t.Cleanup(w.remove)
	err := w.beginWhole(plan, func() error {
		for deadline := time.Now().Add(time.Minute); ; {
			if _, _, lives := w.place.PodInit(); lives { // it has started without a Plan
				break
			}
			if time.Now().After(deadline) {
				return errors.New("no pod init within a minute")
			}
		}
		return w.place.Create(plan, []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until(running)
}

// A pod that cannot be recorded has no processes, and the reason is reported.
func TestNotRecorded(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	full := errors.New("the disk is full")
	if err := w.beginWhole(plan, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("StartPod: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); w.place.Alive(); {
		if time.Now().After(deadline) {
			t.Fatal("its processes live after a minute")
		}
	}
	reapAll()
	said, err := os.ReadFile(w.place.SupervisorLog())
	if err != nil || !strings.Contains(string(said), "the command that started it gave up") {
		t.Errorf("the supervisor says %q, %v", said, err)
	}
}

// A pod stays in the runtime directory of an earlier login, which the supervisor reads from the record,
// even if the record comes late.
func TestLateRecordOfAnotherRuntimeDirectory(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	w := wholeAt(t, plan)
	earlier := store.Dirs{Data: w.dirs.Data, Runtime: filepath.Join(t.TempDir(), "earlier")}
	w.place = earlier.Pod(plan.Namespace, plan.Name)
	if err := os.Mkdir(w.dirs.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.remove)
	err := w.beginWhole(plan, func() error {
		supervisor, end := 0, time.Now().Add(time.Minute)
		for rests := 0; rests < 1000 && time.Now().Before(end); rests++ { // consecutive checks at which it sleeps: it waits
			switch st, ok := procfs.Lookup(supervisor); {
			case !ok || st.Comm != "podrun-superv": // another child of pod init, if any
				podInit, _, _ := w.place.PodInit()
				supervisor, rests = supervisorOf(podInit), 0
			case st.State != 'S':
				rests = 0
			}
		}
		return w.place.Create(plan, []byte("{}"))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until(running)
}

// A supervisor that is killed while it removes a sandbox may already have dropped some of the traffic
// descriptors in pod init: the next one completes the removal with the remaining ones.
func TestASandboxIsRemovedWithoutAllOfItsTraffic(t *testing.T) {
	testenv.NoLeaks(t)
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	place := dirs.Pod("default", "web")
	if err := os.MkdirAll(place.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	own := []netip.Addr{netip.MustParseAddr("10.99.0.7"), netip.MustParseAddr("fd99::7")}
	if err := place.WriteLease(store.Lease{Slot: 7, Addresses: own, Masqueraded: true}); err != nil {
		t.Fatal(err)
	}
	for dropped := range len(router.TrafficNames) + 1 {
		e := &engine{plan: newPlan(nil, nil), pod: place, handoff: &handoff.Record{}}
		kept := map[string]uintptr{}
		for _, name := range router.TrafficNames[dropped:] {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			kept[protocol.KeptTraffic+name] = uintptr(fd)
		}
		some := len(kept) > 0
		a := &recovery{engine: e, inherited: &podinit.Inherited{Died: true, Files: kept}, observed: lifecycle.Observed{Sandbox: lifecycle.SandboxRemoving}}
		if err := a.recoverSandbox(); err != nil {
			t.Errorf("%d wires dropped: %v", dropped, err)
			continue
		}
		s := e.sandbox
		if s.Egress != nil {
			t.Errorf("%d wires dropped: it is served", dropped)
		}
		if some != (s.Slot == 7 && s.Masquerades && s.Pool.V4 == netip.MustParsePrefix("10.99.0.0/16")) {
			t.Errorf("%d wires dropped: slot %d in %v", dropped, s.Slot, s.Pool)
		}
		if len(a.repeat) != 1 || a.repeat[0].Kind != lifecycle.RemoveSandbox {
			t.Errorf("%d wires dropped: %v is done again", dropped, a.repeat)
		}
	}
}
