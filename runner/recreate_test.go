package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// patient is how long a pod may take on a loaded machine to be served again.
const patient = time.Minute

// untilAgain watches the pod, across supervisors, until ok.
func (w wholePod) untilAgain(what string, ok func(*pod.Status) bool) *pod.Status {
	w.t.Helper()
	var last *pod.Status
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); {
		conn, err := w.place.Dial()
		if err != nil {
			idle(time.Millisecond)
			continue
		}
		conn.SetDeadline(deadline)
		for err = wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err == nil; {
			var f wire.Frame
			if f, _, err = wire.ReadFrame(conn); err == nil && f.Status != nil {
				if last = f.Status; ok(last) {
					conn.Close()
					return last
				}
			}
		}
		conn.Close()
	}
	w.t.Fatalf("the pod is not %s within %v: %+v", what, patient, last)
	return nil
}

// untilLogged waits until an instance of a container has logged exactly this text.
func (w wholePod) untilLogged(container string, attempt int, text string) {
	w.t.Helper()
	for deadline := time.Now().Add(patient); logText(w.t, w.place, container, attempt) != text; {
		if time.Now().After(deadline) {
			w.t.Fatalf("instance %d of container %s wrote %q, not %q", attempt, container, logText(w.t, w.place, container, attempt), text)
		}
	}
}

// monitorOf returns the monitor of a pod init.
func (w wholePod) monitorOf(podInit int) int {
	t := w.t
	t.Helper()
	st, ok := procfs.Lookup(podInit)
	if !ok {
		t.Fatal("the pod init has gone")
	}
	if pid, ok := w.place.Monitor(); !ok || pid != st.PPID || !podinit.IsMonitor(pid, w.place) {
		t.Errorf("the monitor is %d, a monitor: %t", pid, podinit.IsMonitor(pid, w.place))
	}
	monitor, ok := procfs.Lookup(st.PPID)
	if !ok || monitor.Comm != "podrun-monitor" {
		t.Fatalf("the pod init's parent is %+v", monitor)
	}
	return monitor.PID
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// risingPlan returns a Plan with an init container that counts its runs in an emptyDir, and an app.
func risingPlan(t *testing.T, script string) *pod.Plan {
	l := layer(t)
	i, a := shell(l, "i", "echo run >> /v/runs"), shell(l, "a", "echo up; "+script)
	i.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	a.Mounts = i.Mounts
	plan := newPlan([]pod.Container{i}, []pod.Container{a})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	return plan
}

// When pod init is killed, with its supervisor running or hibernating, the sandbox ends. The monitor starts
// another pod init, whose supervisor makes another sandbox: all init containers run, then the apps, whose
// restart counts grow; volumes and logs stay.
func TestAnotherSandboxAfterThePodInit(t *testing.T) {
	for _, after := range []string{"0", "20ms"} {
		t.Run(after, func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_HIBERNATE_AFTER", after)
			w := startWhole(t, risingPlan(t, "exec sleep 1000"))
			w.until(running)
			w.logged("up", 1)
			_, podInit := w.processes()
			monitor := w.monitorOf(podInit)
			if after != "0" {
				w.asleep(podInit)
			}
			begun := time.Now()
			kill9(t, podInit)
			st := w.untilAgain("running again", func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
			t.Logf("running again after %v", time.Since(begun))
			if end := st.Containers[0].LastState.Terminated; end == nil || end.ExitCode != 137 || st.InitContainers[0].RestartCount != 1 {
				t.Errorf("the status is %+v", st)
			}
			if b, err := os.ReadFile(filepath.Join(w.place.VolumesDir(), "v", "runs")); err != nil || string(b) != "run\nrun\n" {
				t.Errorf("the init container has run %q: %v", b, err)
			}
			w.untilLogged("a", 0, "up\n")
			w.untilLogged("a", 1, "up\n")
			if _, next := w.processes(); next == podInit || w.monitorOf(next) != monitor {
				t.Errorf("pod init %d, monitor %d; before %d, %d", next, w.monitorOf(next), podInit, monitor)
			}
			log, err := w.place.Events()
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			for _, e := range log {
				reasons = append(reasons, e.Reason)
			}
			if text := strings.Join(reasons, " "); !strings.Contains(text, "PodSandboxLost SandboxChanged") {
				t.Errorf("the events are %s", text)
			}
		})
	}
}

// With restartPolicy Never there is no other sandbox: the pod has failed, with the reason.
func TestNoOtherSandboxUnderNever(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	plan.RestartPolicy = pod.RestartNever
	w := startWhole(t, plan)
	w.until(running)
	_, podInit := w.processes()
	kill9(t, podInit)
	st := w.final()
	if st.Phase != pod.Failed || st.Reason != "PodSandboxLost" || !strings.Contains(st.Message, "its first process was killed") {
		t.Errorf("the status is %+v", st)
	}
}

// A killed monitor has no effect, until pod init is killed as well: then the pod has ended.
func TestMonitorKilled(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, risingPlan(t, "exec sleep 1000"))
	w.until(running)
	_, podInit := w.processes()
	kill9(t, w.monitorOf(podInit))
	if code, out := w.ask("a", "echo", "there"); code != 0 || out != "there\n" {
		t.Errorf("exec: %d %q", code, out)
	}
	if !w.place.Alive() {
		t.Error("the lock is free")
	}
	kill9(t, podInit)
	reapAll()
	if w.place.Alive() {
		t.Error("the lock is held")
	}
}

// Pod inits that are killed in a loop do not spin; a stop in between works at once.
func TestPodInitsKilledInALoop(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	w := startWhole(t, plan)
	w.until(running)
	_, podInit := w.processes()
	monitor := w.monitorOf(podInit)
	said := func() string {
		b, _ := os.ReadFile(w.place.SupervisorLog())
		return string(b)
	}
	for deadline := time.Now().Add(2 * patient); !strings.Contains(said(), "restarting in 1.6 s"); {
		for _, pid := range childrenOf(monitor) {
			unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the monitor does not wait longer and longer: %s", said())
		}
	}
	if err := unix.Kill(monitor, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if st := w.final(); !st.Deleting || !st.Phase.Terminal() {
		t.Errorf("the status is %+v", st)
	}
}

// A signal to the monitor stops the pod gracefully.
func TestMonitorPassesStopsOn(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, withFifos(t, newPlan(nil, []pod.Container{shell(layer(t), "a", obedient)}), "never"))
	w.until(running)
	w.release("never")
	_, podInit := w.processes()
	if err := unix.Kill(w.monitorOf(podInit), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if c := w.final().Containers[0]; c.State.Terminated == nil || c.State.Terminated.ExitCode != 3 {
		t.Errorf("the container ended as %+v", c)
	}
}

// The first process of a shared PID namespace is a part of the sandbox, too.
func TestAnotherSandboxAfterThePause(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	plan.ShareProcessNamespace = true
	w := startWhole(t, plan)
	w.until(running)
	supervisor, _ := w.processes()
	pause := 0
	for _, pid := range childrenOf(supervisor) {
		if st, ok := procfs.Lookup(pid); ok && st.Comm == "podrun-pause" {
			pause = pid
		}
	}
	if pause == 0 {
		t.Fatalf("supervisor %s has no pause process", strconv.Itoa(supervisor))
	}
	kill9(t, pause)
	w.untilAgain("running again", func(st *pod.Status) bool {
		return running(st) && st.Containers[0].RestartCount == 1 && st.InitContainers[0].RestartCount == 1
	})
	if now, _ := w.processes(); now != supervisor {
		t.Error("it is another supervisor")
	}
}

// killAll kills all processes of a pod.
func (w wholePod) killAll() {
	w.t.Helper()
	_, podInit := w.processes()
	kill9(w.t, w.monitorOf(podInit))
	kill9(w.t, podInit)
	reapAll()
	if w.place.Alive() {
		w.t.Fatal("the pod lives")
	}
}

// again starts a pod without processes, as `podrun up` does.
func (w wholePod) again(plan *pod.Plan) {
	w.t.Helper()
	if err := w.start(plan); err != nil {
		w.t.Fatal(err)
	}
}

// A record from before the last boot, in a runtime directory that outlived it, is not used for times and
// processes: the logs give the restart counts, and completed containers do not run again.
func TestPodGoesOnAfterTheMachinesStart(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "echo up; exec sleep 1000"), shell(l, "done", "echo done")})
	plan.RestartPolicy = pod.RestartOnFailure
	w := startWhole(t, plan)
	worked := func(st *pod.Status) bool {
		return st.Containers[0].State.Running != nil && st.Containers[1].State.Terminated != nil
	}
	w.until(worked)
	w.killAll()
	path := recordOf(w.place)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `"Boot":"`, `"Boot":"another than `, 1)
	if text == string(b) {
		t.Fatalf("the state does not name the machine's run: %s", b)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.again(plan)
	st := w.untilAgain("running again", worked)
	a, done := st.Containers[0], st.Containers[1]
	if a.RestartCount != 1 || a.LastState.Terminated == nil || !strings.Contains(a.LastState.Terminated.Message, "the machine was restarted") {
		t.Errorf("the app that ran is %+v", a)
	}
	if done.RestartCount != 0 || done.State.Terminated.ExitCode != 0 {
		t.Errorf("the app that had done its work is %+v", done)
	}
}

// A pod recovers without a record that cannot be read, and reports why its sandbox is gone.
func TestPodGoesOnWithoutItsRecord(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	w := startWhole(t, plan)
	w.until(running)
	damage := func() {
		if err := os.WriteFile(recordOf(w.place), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(restarts int, reason string) {
		t.Helper()
		st := w.untilAgain("running again", func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == restarts })
		if end := st.Containers[0].LastState.Terminated; end == nil || !strings.Contains(end.Message, reason) {
			t.Errorf("the last end is %+v, want the message %q", end, reason)
		}
	}
	damage()
	_, podInit := w.processes()
	kill9(t, podInit)
	check(1, podInitKilled)
	w.killAll()
	damage()
	w.again(plan)
	check(2, allKilled)
}

// A pod that was killed in the middle of its start can start.
func TestPodKilledBeforeItRuns(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	plan.RestartPolicy = pod.RestartNever
	w := startWhole(t, plan)
	podInit, _, ok := w.place.PodInit()
	if !ok || podinit.IsMonitor(podInit, w.place) {
		t.Fatalf("the pod init is said to be %d: %t", podInit, ok)
	}
	unix.Kill(podInit, unix.SIGKILL)
	w.untilAgainOrEnded()
}

// untilAgainOrEnded waits until the pod runs or has ended.
func (w wholePod) untilAgainOrEnded() {
	w.t.Helper()
	for w.place.Alive() {
		if st, err := w.place.Status(); err == nil && (running(st) || st.Phase.Terminal()) {
			return
		}
	}
}

// TestStatusOutlivesTheSandbox: an ended pod keeps its addresses and the users of its containers, which a
// later supervisor knows only from the state it found.
func TestStatusOutlivesTheSandbox(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "until test -e /tmp/end; do usleep 10000; done")
	c.User, c.SupplementalGroups = "1000:1001", []uint32{2000}
	w := startWhole(t, newPlan(nil, []pod.Container{c}))
	w.until(running)
	before, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	_, out := w.ask("a", "/bin/grep", "-E", "^(Uid|Gid|Groups):", "/proc/1/status")
	if got := strings.Join(strings.Fields(out), " "); got != "Uid: 1000 1000 1000 1000 Gid: 1001 1001 1001 1001 Groups: 1001 2000" {
		t.Errorf("its process has %q", got)
	}
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The end of the container kills touch if it still runs.
	if code, out := w.ask("a", "/bin/touch", "/tmp/end"); code != 0 && code != 128+int(unix.SIGKILL) {
		t.Fatalf("touch: %d, %s", code, out)
	}
	w.untilDead()
	after, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	if len(before.PodIPs) != 2 || !slices.Equal(before.PodIPs, after.PodIPs) || !slices.Equal(before.HostIPs, after.HostIPs) {
		t.Errorf("addresses %v and %v became %v and %v", before.PodIPs, before.HostIPs, after.PodIPs, after.HostIPs)
	}
	for _, st := range []*pod.Status{before, after} {
		if u := st.Containers[0].User; u == nil || u.UID != 1000 || u.GID != 1001 || !slices.Equal(u.Groups, []int{1001, 2000}) {
			t.Errorf("%s: the user is %+v", st.Phase, u)
		}
	}
}

// untilDead waits until no process of the pod is left.
func (w wholePod) untilDead() {
	w.t.Helper()
	lock, err := w.place.WaitLock()
	if err != nil {
		w.t.Fatal(err)
	}
	lock.Close()
}
