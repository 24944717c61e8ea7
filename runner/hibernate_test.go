package runner

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// asleep waits until the pod has no supervisor.
func (w wholePod) asleep(podInit int) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// An emulated machine that runs other tests at the same time is slow.
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-tick.C {
		if supervisorOf(podInit) == 0 {
			return
		}
	}
	w.t.Fatalf("the supervisor of pod init %d does not sleep within 2 minutes", podInit)
}

// awake waits until the pod has a supervisor, and returns its pid.
func (w wholePod) awake(podInit int) int {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if pid := supervisorOf(podInit); pid != 0 {
			return pid
		}
	}
	w.t.Fatalf("pod init %d has no supervisor within a minute", podInit)
	return 0
}

// hibernated starts a pod whose supervisor hibernates as soon as it is idle.
func hibernated(t *testing.T, plan *pod.Plan) (w wholePod, podInit int) {
	t.Helper()
	t.Setenv("PODRUN_HIBERNATE_AFTER", "20ms")
	w = startWhole(t, plan)
	w.until(running)
	_, podInit = w.processes()
	w.asleep(podInit)
	return w, podInit
}

func (w wholePod) ask(container string, args ...string) (int, string) {
	return (&testPod{t: w.t, place: w.place}).request(&wire.ExecRequest{Container: container, Args: args})
}

// A pod whose supervisor hibernates answers requests, and its supervisor hibernates again.
func TestHibernatingSupervisorAnswers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a := shell(l, "a", "printf 'half a '; read x < /v/fifo; echo line; exec sleep 1000")
	a.Mounts, a.User = []pod.Mount{{Volume: "v", Path: "/v"}}, "1000:1000"
	b := shell(l, "b", "mkfifo /v/fifo; chmod 666 /v/fifo; exec sleep 1000")
	b.Mounts = a.Mounts
	plan := newPlan([]pod.Container{shell(l, "i", "mkfifo /v/fifo && chmod 666 /v/fifo")}, []pod.Container{a, b})
	plan.InitContainers[0].Mounts = a.Mounts
	plan.ShareProcessNamespace = true
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}}
	w, podInit := hibernated(t, plan)
	for range 3 {
		if code, out := w.ask("a", "/bin/sh", "-c", "id -u; cat /proc/1/comm; exit 7"); code != 7 || out != "1000\npodrun-pause\n" {
			t.Errorf("exec woke it to %d %q", code, out)
		}
		w.asleep(podInit)
	}
	w.until(func(st *pod.Status) bool {
		if !running(st) || st.Containers[0].RestartCount != 0 {
			t.Errorf("status after sleep: %+v", st)
		}
		return true
	})
	// A line that began before the hibernation and ends after it is one line.
	if code, out := w.ask("b", "/bin/sh", "-c", "echo go > /v/fifo"); code != 0 {
		t.Fatal(out)
	}
	var log string
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log, "line") && time.Now().Before(deadline); {
		log = stdoutOf(t, w.place, "a")
	}
	if log != "half a line\n" {
		t.Errorf("log %q", log)
	}
	w.asleep(podInit)
}

// Events of a container during hibernation are handled: its exit with the code, its restart, and a stop.
func TestHibernatingSupervisorSeesTheEnd(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	ends := shell(l, "ends", "read x < /v/fifo; echo bye > /dev/termination-log; exit 7")
	ends.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	stays := shell(l, "stays", "trap 'echo stopped; exit 3' TERM; while :; do read x < /v/never; done")
	stays.Mounts = ends.Mounts
	plan := newPlan([]pod.Container{shell(l, "i", "mkfifo /v/fifo /v/never")}, []pod.Container{ends, stays})
	plan.InitContainers[0].Mounts = ends.Mounts
	plan.RestartPolicy, plan.GraceSeconds = pod.RestartAlways, 1
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	w, podInit := hibernated(t, plan)
	fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fifo.Close() // the read ends, and with it the container
	w.until(func(st *pod.Status) bool {
		c := st.Containers[0]
		if c.RestartCount == 0 || c.State.Running == nil {
			return false
		}
		if end := c.LastState.Terminated; end == nil || end.ExitCode != 7 || end.Message != "bye\n" {
			t.Errorf("last state %+v", c.LastState)
		}
		return true
	})
	w.asleep(podInit)
	conn := w.dial()
	defer conn.Close()
	w.awake(podInit)
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(podInit, unix.SIGTERM); err != nil { // as systemd stops a pod
		t.Fatal(err)
	}
	var last *pod.Status
	for {
		f, _, err := wire.ReadFrame(conn)
		if err != nil {
			break
		}
		last = f.Status
	}
	if last == nil || !last.Deleting || last.Containers[1].State.Terminated == nil || last.Containers[1].State.Terminated.ExitCode != 3 {
		t.Errorf("final status %+v", last)
	}
}

// SIGTERM alone wakes the supervisor and stops the pod.
func TestHibernatingSupervisorStopsOnSignal(t *testing.T) {
	testenv.NoLeaks(t)
	w, podInit := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "trap 'exit 3' TERM; while :; do sleep 0.01; done")}))
	if err := unix.Kill(podInit, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lock, err := w.place.WaitLock()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	st, err := w.place.Status()
	if err != nil || !st.Deleting || st.Containers[0].State.Terminated == nil || st.Containers[0].State.Terminated.ExitCode != 3 {
		t.Errorf("final status %+v: %v", st, err)
	}
}

// A container that has closed its outputs does not keep its supervisor from hibernating.
func TestSupervisorHibernatesWithoutOutputs(t *testing.T) {
	testenv.NoLeaks(t)
	w, podInit := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000 >/dev/null 2>&1")}))
	w.sound(podInit)
	for deadline := time.Now().Add(patient); ; { // it may still be on its way
		before := switches(t, podInit)
		idle(300 * time.Millisecond)
		after := switches(t, podInit)
		if after == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it wakes without cause: %s, then %s context switches", before, after)
		}
	}
}

// switches returns how often a process has waited (voluntary context switches).
func switches(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "voluntary_ctxt_switches:\t")
	n, _, _ := strings.Cut(after, "\n")
	return n
}

// If its saved state is damaged the supervisor cannot recover: the whole pod ends.
func TestDamagedStateEndsTheHibernatingPod(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"null":  func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"half": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, st.Size()/2)
		},
		"stranger": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(b), `"Name":"a"`, `"Name":"b"`)), 0o600)
		},
		"version": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(b), `"Version":1`, `"Version":99`)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w, _ := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
			if err := damage(recordOf(w.place)); err != nil {
				t.Fatal(err)
			}
			w.dial().Close()
			w.final()
			if b, err := os.ReadFile(w.place.SupervisorLog()); err != nil || len(b) == 0 {
				t.Errorf("it does not say why: %v", err)
			}
		})
	}
}

// Deadlines during hibernation are kept: the back-off of a container and the pod's deadline.
func TestDeadlinesDuringHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := withFifos(t, newPlan(nil, []pod.Container{shell(l, "a", "exit 1"), shell(l, "b", obedient)}), "never")
	plan.RestartPolicy, plan.ActiveDeadlineSeconds, plan.GraceSeconds = pod.RestartAlways, 3, 0
	t.Setenv("PODRUN_HIBERNATE_AFTER", "20ms")
	begun := time.Now()
	w := startWhole(t, plan)
	st := w.final()
	if took := time.Since(begun); took < 3*time.Second || took > patient {
		t.Errorf("the pod ended after %v", took)
	}
	if st.Reason != "DeadlineExceeded" || st.Phase != pod.Failed {
		t.Errorf("final status %+v", st)
	}
}

// A client that sends nothing, or does not read, does not keep the pod from ending.
func TestSilentClientsDoNotHoldThePod(t *testing.T) {
	testenv.NoLeaks(t)
	w, _ := hibernated(t, withFifos(t, newPlan(nil, []pod.Container{shell(layer(t), "a", obedient)}), "never"))
	w.release("never")
	_, podInit := w.processes()
	for range 3 {
		conn := w.dial()
		defer conn.Close()
	}
	conn := w.dial()
	defer conn.Close()
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(podInit, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.final()
}

// When the first process of its shared PID namespace dies, a pod gets another sandbox, with the supervisor
// running or hibernating. If its containers are never restarted the pod has failed, with the reason.
func TestLostPauseProcessEndsTheSandbox(t *testing.T) {
	for _, after := range []string{"20ms", "0"} {
		for _, policy := range []pod.RestartPolicy{pod.RestartAlways, pod.RestartNever} {
			t.Run(after+" "+string(policy), func(t *testing.T) {
				testenv.NoLeaks(t)
				plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
				plan.ShareProcessNamespace, plan.RestartPolicy = true, policy
				t.Setenv("PODRUN_HIBERNATE_AFTER", after)
				w := startWhole(t, plan)
				w.until(running)
				w.killPause(after != "0")
				if policy == pod.RestartNever {
					if st := w.final(); st.Phase != pod.Failed || st.Reason != "PodSandboxLost" {
						t.Errorf("final status %+v", st)
					}
					return
				}
				w.untilAgain("running in another sandbox", func(st *pod.Status) bool {
					return running(st) && st.Containers[0].RestartCount == 1
				})
			})
		}
	}
}

// killPause kills the first process of the pod's shared PID namespace; with hibernates it waits first until the
// supervisor hibernates.
func (w wholePod) killPause(hibernates bool) {
	w.t.Helper()
	supervisor, podInit := w.processes()
	if hibernates {
		w.sound(podInit)
	}
	for _, pid := range append(childrenOf(supervisor), childrenOf(podInit)...) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(b) == "podrun-pause\n" {
			kill9(w.t, pid)
			return
		}
	}
	w.t.Fatal("the pod has no first process")
}

// A pod init whose limit of descriptors is lower than the number it holds still waits without using
// processor time, and receives its events.
func TestPodInitWithFewDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	w, podInit := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	var was unix.Rlimit
	if err := unix.Prlimit(podInit, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(podInit, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 2, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(podInit, unix.SIGCHLD); err != nil { // it checks its descriptors again
		t.Fatal(err)
	}
	before := ticks(t, podInit)
	idle(500 * time.Millisecond)
	if spent := ticks(t, podInit) - before; spent > 10 {
		t.Errorf("it has spent %d ticks of half a second", spent)
	}
	if err := unix.Prlimit(podInit, unix.RLIMIT_NOFILE, &was, nil); err != nil { // its supervisor inherits the limit
		t.Fatal(err)
	}
	if code, out := w.ask("a", "echo", "heard"); code != 0 || out != "heard\n" {
		t.Errorf("it does not wake a supervisor: %d %q", code, out)
	}
}

// ticks returns the processor time that a process has used, in hundredths of a second.
func ticks(t *testing.T, pid int) (sum int) {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	for _, field := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// attributes is a shell script that prints what a process inherits from its parents.
const attributes = `exec 2>&1
cat /proc/self/limits /proc/self/oom_score_adj
echo "timer slack: $(cat /proc/self/timerslack_ns)"
grep -E '^(Sig(Blk|Ign|Cgt)|Cap|NoNewPrivs|Seccomp|Groups|Umask|Uid|Gid|CoreDumping|THP)' /proc/self/status
umask; env; for fd in /proc/self/fd/* /proc/1/fd/*; do readlink $fd; done; tr '\0' '\n' </proc/1/environ; cat /proc/1/mountinfo | wc -l
`

// The attributes of containers and commands do not depend on whether the supervisor has hibernated, nor on
// which signals the process that started the pod ignores.
func TestAttributesAfterHibernation(t *testing.T) {
	slack, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ shared, shim bool }{{}, {shared: true}, {shim: true}} {
		t.Run(fmt.Sprintf("shared %v, exec shim %v", c.shared, c.shim), func(t *testing.T) {
			testenv.NoLeaks(t)
			if c.shim {
				withShim(t)
			}
			signal.Ignore(unix.SIGHUP, unix.SIGINT)
			t.Cleanup(func() { signal.Reset(unix.SIGHUP, unix.SIGINT) })
			plan := withFifos(t, newPlan(nil, []pod.Container{
				// The parentheses keep the first process from opening a file while it is looked at.
				shell(layer(t), "a", "("+attributes+")\nread x < /v/fifo; exit 7"),
			}), "fifo")
			plan.RestartPolicy, plan.ShareProcessNamespace = pod.RestartAlways, c.shared
			plan.Containers[0].User = "1000:1000"
			t.Setenv("PODRUN_HIBERNATE_AFTER", "200ms")
			w := startWhole(t, plan)
			w.until(running)
			script := []string{"/bin/sh", "-c", attributes}
			supervisor, podInit := w.processes()
			_, early := w.ask("a", script...)
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", supervisor)); string(b) != "podrun-superv\n" {
				t.Fatalf("supervisor is called %q", b)
			}
			w.asleep(podInit)
			_, late := w.ask("a", script...)
			compareText(t, "exec", early, late)
			w.asleep(podInit)
			w.release("fifo")
			w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
			w.release("fifo") // once it waits there it has printed everything
			w.until(func(st *pod.Status) bool { return st.Containers[0].State.Running == nil })
			first, second := logText(t, w.place, "a", 0), logText(t, w.place, "a", 1)
			compareText(t, "container", first, second)
			for _, want := range []string{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "timer slack: " + string(slack)} {
				if !strings.Contains(first, want) || !strings.Contains(early, want) {
					t.Errorf("no %q in %s%s", want, first, early)
				}
			}
			if strings.Contains(second+late, "PODRUN") {
				t.Errorf("podrun's environment in %s%s", second, late)
			}
		})
	}
}

var inode = regexp.MustCompile(`\[\d+\]|/proc/\d+/`)

func compareText(t *testing.T, what, before, after string) {
	t.Helper()
	before, after = inode.ReplaceAllString(before, "[]"), inode.ReplaceAllString(after, "[]")
	if before != after || before == "" {
		t.Errorf("%s before any sleep:\n%s\nafter it:\n%s", what, before, after)
	}
}

func logText(t *testing.T, place store.Pod, container string, attempt int) string {
	t.Helper()
	var b strings.Builder
	for _, r := range parse(t, place.LogFile(container, attempt)) {
		b.WriteString(r[2] + "\n")
	}
	return b.String()
}
