package runner

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// wholePod is a pod with its own pod init and supervisor processes, as `podrun up` starts them.
type wholePod struct {
	t     *testing.T
	dirs  store.Dirs
	place store.Pod
}

func startWhole(t *testing.T, plan *pod.Plan) wholePod {
	t.Helper()
	w := newWhole(t, plan)
	if err := w.start(plan); err != nil {
		t.Fatal(err)
	}
	return w
}

// newWhole prepares a pod that is not started yet.
func newWhole(t *testing.T, plan *pod.Plan) wholePod {
	t.Helper()
	root := t.TempDir()
	w := wholePod{t: t, dirs: store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}}
	w.place = w.dirs.Pod(plan.Namespace, plan.Name)
	t.Cleanup(func() {
		if b, _ := os.ReadFile(w.place.SupervisorLog()); t.Failed() && len(b) > 0 {
			t.Logf("the supervisors say:\n%s", b)
		}
		w.remove()
	})
	return w
}

func (w wholePod) start(plan *pod.Plan) error {
	lock, err := w.place.Lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := w.place.Create(plan, []byte("{}")); err != nil {
		return err
	}
	var users *host.Range
	if u := plan.Users; u != nil {
		users = &host.Range{First: uint64(u.First), Count: uint64(u.Count)}
	}
	return podinit.Start(podinit.Options{Users: users, HostPID: plan.HostPID, Programs: podinit.Programs{Pod: "/proc/self/exe", Supervisor: "/proc/self/exe", Netstack: "/proc/self/exe"}, Dirs: w.dirs, Pod: w.place, Hostname: plan.Hostname, Lock: lock, OwnUserNS: plan.OwnUserNS})
}

// remove does what `podrun down` does with a dead pod. It must always work.
func (w wholePod) remove() {
	w.t.Helper()
	w.removeBeside()
	reapAll()
}

// removeBeside is remove while other pods live.
func (w wholePod) removeBeside() {
	w.t.Helper()
	if !w.place.Exists() {
		return
	}
	if conn, err := w.place.Dial(); err == nil {
		grace := int64(0)
		wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: &grace}})
		wire.ReadFrame(conn) // its end
		conn.Close()
	}
	lock, err := w.place.WaitLock()
	if err != nil {
		w.t.Fatal(err)
	}
	defer lock.Close()
	if err := podinit.RemovePod("/proc/self/exe", w.dirs, w.place); err != nil {
		w.t.Error(err)
	}
}

// reapAll reaps processes that became children of this PID 1 when their parents exited.
func reapAll() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// until watches the pod over its socket.
func (w wholePod) until(ok func(*pod.Status) bool) {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err != nil {
		w.t.Fatal(err)
	}
	for {
		f, _, err := wire.ReadFrame(conn)
		if err != nil {
			w.t.Fatalf("watch: %v", err)
		}
		if f.Status != nil && ok(f.Status) {
			return
		}
	}
}

func (w wholePod) dial() *net.UnixConn {
	w.t.Helper()
	conn, err := w.place.Dial()
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// processes returns the supervisor, which this wakes, and its parent, the pod init.
func (w wholePod) processes() (supervisor, podInit int) {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	podInit = peer(w.t, conn)
	for deadline := time.Now().Add(time.Minute); supervisor == 0; {
		if time.Now().After(deadline) {
			w.t.Fatal("there is no supervisor within a minute")
		}
		supervisor = supervisorOf(podInit)
	}
	return supervisor, podInit
}

// peer returns the pid of the process that listens on the connection's socket. That is pod init, which
// calls listen itself.
func peer(t *testing.T, conn *net.UnixConn) (pid int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			t.Fatal(err)
		}
		pid = int(cred.Pid)
	})
	return pid
}

// supervisorOf returns pod init's child that is, or becomes, a supervisor; 0 if there is none. Probers have the
// pod init's command line, which is the supervisor's.
func supervisorOf(podInit int) int {
	for _, pid := range childrenOf(podInit) {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if strings.HasPrefix(string(b), "podrun\x00"+protocol.EntrySupervisor+"\x00") && string(comm) != protocol.CommProber+"\n" {
			return pid
		}
	}
	return 0
}

// childrenOf returns a process's children of all its threads.
func childrenOf(parent int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if st, ok := procfs.Lookup(pid); ok && st.PPID == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

func running(st *pod.Status) bool { return st.Phase == pod.Running && allRunning(st.Containers) }

func TestPodInitHoldsTheSandbox(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "hostname > /v/out; cat /proc/sys/net/ipv4/ip_unprivileged_port_start >> /v/out; exec sleep 1000")})
	plan.Hostname = "of-the-pod"
	plan.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "42"}
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.Containers[0].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	w := startWhole(t, plan)
	w.until(running)
	supervisor, podInit := w.processes()
	for pid, want := range map[int]string{supervisor: "podrun-superv\n", podInit: "podrun-podinit\n"} {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); err != nil || string(b) != want {
			t.Errorf("process %d is %q, want %q: %v", pid, b, want, err)
		}
	}
	held := map[string]string{"net": "/proc/1/fd/5", "ipc": "/proc/1/fd/6", "uts": "/proc/1/fd/7"}
	for _, ns := range []string{"net", "ipc", "uts"} {
		inside, err1 := os.Readlink(strings.Replace(held[ns], "/proc/1/", "/proc/"+strconv.Itoa(podInit)+"/", 1))
		ours, err2 := os.Readlink("/proc/self/ns/" + ns)
		below, err3 := os.Readlink("/proc/" + strconv.Itoa(podInit) + "/ns/" + ns)
		above, err4 := os.Readlink("/proc/" + strconv.Itoa(supervisor) + "/ns/" + ns)
		if err := errors.Join(err1, err2, err3, err4); err != nil || inside == ours || above != ours || below != ours || !strings.HasPrefix(inside, ns+":") {
			t.Errorf("%s namespace: held %s, pod init %s, supervisor %s, host %s: %v", ns, inside, below, above, ours, err)
		}
	}
	var out string
	for !strings.Contains(out, "42\n") && w.place.Alive() {
		b, _ := os.ReadFile(filepath.Join(w.place.VolumesDir(), "v", "out"))
		out = string(b)
	}
	if out != "of-the-pod\n42\n" {
		t.Errorf("the container saw %q", out)
	}
	if !w.place.Alive() {
		t.Error("the pod's lock is free while it runs")
	}
}

// kill -9 of pod init, with its supervisor running or hibernating: every process of the pod is gone, and
// what is left can be removed.
func TestKilledPodLeavesNothingThatCannotBeRemoved(t *testing.T) {
	for _, after := range []string{"0", "20ms"} {
		t.Run(after, func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_HIBERNATE_AFTER", after)
			l := layer(t)
			c := shell(l, "a", "mkdir -p /v/d && chown 1000:1000 /v/d && chmod 700 /v/d && touch /x && echo ready && exec sleep 1000")
			c.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
			plan := newPlan([]pod.Container{shell(l, "i", "true")}, []pod.Container{c, shell(l, "b", "exec sleep 1000")})
			plan.ShareProcessNamespace = true
			plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
			w := startWhole(t, plan)
			w.until(running)
			_, podInit := w.processes()
			if after != "0" {
				w.asleep(podInit)
			}
			if err := unix.Kill(podInit, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			reapAll() // every process of the pod has become a child of PID 1 or is gone
			if w.place.Alive() {
				t.Error("the pod's lock is still held")
			}
			w.remove()
			if w.place.Exists() {
				t.Error("the pod still exists")
			}
			if left, err := os.ReadDir(filepath.Dir(filepath.Dir(w.place.DataDir()))); err != nil || len(left) > 0 {
				t.Errorf("left on disk: %v %v", left, err)
			}
		})
	}
}

// podInitKills is how many of a pod's inits are killed, besides supervisors and, last, the monitor.
const podInitKills = 4

// Pod init is killed at any moment of its pod's life, with or without its supervisor before. Another
// sandbox is made and the pod is served again, restart counts are right, no logged line is out of order, a
// stop works, and nothing is left. A killed monitor is not needed.
func TestKilledPodInits(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	var slowest time.Duration
	for round := range killPods * *torture {
		t.Setenv("PODRUN_HIBERNATE_AFTER", []string{"0", "10ms", "50ms"}[round%3])
		w := startWhole(t, killPlan(t, l, round%2 == 0))
		restarts := 0
		for range podInitKills {
			idle(time.Duration(rand.Int64N(int64(120 * time.Millisecond))))
			podInit, _, ok := w.place.PodInit()
			if !ok {
				t.Fatal("the pod does not live")
			}
			if pid := supervisorOf(podInit); pid != 0 && rand.IntN(3) == 0 {
				unix.Kill(pid, unix.SIGKILL)
			}
			begun := time.Now()
			unix.Kill(podInit, unix.SIGKILL)
			for now := podInit; now == podInit; now, _, _ = w.place.PodInit() { // until another one has written its pid
				if time.Since(begun) > patient {
					t.Fatalf("there is no other pod init within %v", patient)
				}
			}
			st := w.untilAgain("served again", func(st *pod.Status) bool { return st.InitContainers[0].RestartCount >= 0 })
			slowest = max(slowest, time.Since(begun))
			if n := st.Containers[0].RestartCount; n < restarts || n > restarts+1 {
				t.Errorf("the app that stays was restarted %d times, and %d before", n, restarts)
			}
			restarts = st.Containers[0].RestartCount
		}
		if round%2 == 1 {
			if pid, ok := w.place.Monitor(); ok {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		podInit, _, _ := w.place.PodInit()
		if err := unix.Kill(podInit, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if st := w.final(); !st.Deleting || !st.Phase.Terminal() {
			t.Errorf("the pod has ended as %+v", st)
		}
		w.inOrder("steady", restarts+1)
		if t.Failed() {
			t.Fatalf("pod %d", round)
		}
		w.remove()
	}
	t.Logf("%d kills of pod inits; the slowest took %v to be served again", killPods*podInitKills**torture, slowest)
}

// inOrder checks the lines of a container that counts, in every log there is.
func (w wholePod) inOrder(container string, most int) {
	w.t.Helper()
	for attempt := range most + 1 {
		if _, err := os.Stat(w.place.LogFile(container, attempt)); err != nil {
			continue // of dead instances only the last log is kept
		}
		lines := parse(w.t, w.place.LogFile(container, attempt))
		for i, r := range lines {
			if r[2] != strconv.Itoa(i+1) && i < len(lines)-1 { // the last line may be incomplete
				w.t.Fatalf("line %d of run %d is %q", i+1, attempt, r)
			}
		}
	}
}

// A supervisor's Go runtime starts while the pod's namespaces are made. If they cannot be made the
// supervisor does nothing: the process that starts the pod gets the reason once, and no process is left.
func TestSupervisorOfAPodWithoutNamespaces(t *testing.T) {
	const limit = "/proc/sys/user/max_uts_namespaces" // of the test's user namespace
	before, err := os.ReadFile(limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, hostpid := range map[string]bool{"its own PID namespace": false, "the host's": true} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
			plan.HostPID = hostpid
			w := newWhole(t, plan)
			if err := os.WriteFile(limit, []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
			err := w.start(plan)
			if err := os.WriteFile(limit, before, 0); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				t.Fatal("the pod has been started")
			}
			if what := "make the pod's network, IPC and UTS namespaces: "; strings.Count(err.Error(), what) != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("it was said: %v", err)
			}
			if _, err := os.Stat(recordOf(w.place)); err == nil {
				t.Error("a supervisor has taken the pod up")
			}
		})
	}
}
