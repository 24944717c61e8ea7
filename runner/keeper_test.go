package runner

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// wholePod is a pod with its own keeper and supervisor processes, as `podrun up`
// starts them.
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

// newWhole is for a pod that is to be started.
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
	return stage.StartPod(stage.PodStart{Users: users, HostPID: plan.HostPID, Programs: stage.Programs{Supervisor: "/proc/self/exe", Netstack: "/proc/self/exe"}, Dirs: w.dirs, Pod: w.place, Hostname: plan.Hostname, Lock: lock, Apart: plan.Apart})
}

// remove is what `podrun down` does with a dead pod. It must always work.
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
	if err := stage.RemovePod("/proc/self/exe", w.dirs, w.place); err != nil {
		w.t.Error(err)
	}
}

// reapAll waits for processes that have become ours, PID 1's, by the end of
// their parents.
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

// processes are the supervisor, which this wakes, and its parent, the keeper.
func (w wholePod) processes() (supervisor, keeper int) {
	w.t.Helper()
	conn := w.dial()
	defer conn.Close()
	keeper = peer(w.t, conn)
	for deadline := time.Now().Add(time.Minute); supervisor == 0; {
		if time.Now().After(deadline) {
			w.t.Fatal("there is no supervisor within a minute")
		}
		supervisor = supervisorOf(keeper)
	}
	return supervisor, keeper
}

// peer is the process that listens to a connection, of which the keeper makes itself one.
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

// supervisorOf finds the keeper's child that is a supervisor, or is to be one; 0 if
// there is none.
func supervisorOf(keeper int) int {
	for _, pid := range childrenOf(keeper) {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if strings.HasPrefix(string(b), "podrun\x00"+stage.Supervisor+"\x00") {
			return pid
		}
	}
	return 0
}

// childrenOf finds a process's children, whichever of its threads has started them.
func childrenOf(parent int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if st, ok := stat(pid); ok && st.parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

func running(st *pod.Status) bool { return st.Phase == pod.Running && allRunning(st.Containers) }

func TestKeeperHoldsTheSandbox(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "hostname > /v/out; cat /proc/sys/net/ipv4/ip_unprivileged_port_start >> /v/out; exec sleep 1000")})
	plan.Hostname = "of-the-pod"
	plan.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "42"}
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.Containers[0].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	w := startWhole(t, plan)
	w.until(running)
	supervisor, keeper := w.processes()
	for pid, want := range map[int]string{supervisor: "podrun-superv\n", keeper: "podrun-keeper\n"} {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); err != nil || string(b) != want {
			t.Errorf("process %d is %q, want %q: %v", pid, b, want, err)
		}
	}
	held := map[string]string{"net": "/proc/1/fd/5", "ipc": "/proc/1/fd/6", "uts": "/proc/1/fd/7"}
	for _, ns := range []string{"net", "ipc", "uts"} {
		inside, err1 := os.Readlink(strings.Replace(held[ns], "/proc/1/", "/proc/"+strconv.Itoa(keeper)+"/", 1))
		ours, err2 := os.Readlink("/proc/self/ns/" + ns)
		below, err3 := os.Readlink("/proc/" + strconv.Itoa(keeper) + "/ns/" + ns)
		above, err4 := os.Readlink("/proc/" + strconv.Itoa(supervisor) + "/ns/" + ns)
		if err := errors.Join(err1, err2, err3, err4); err != nil || inside == ours || above != ours || below != ours || !strings.HasPrefix(inside, ns+":") {
			t.Errorf("%s namespace: held %s, keeper %s, supervisor %s, host %s: %v", ns, inside, below, above, ours, err)
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

// kill -9 of the keeper, awake or asleep: every process of the pod is gone, and what is
// left can be removed.
func TestKilledPodLeavesNothingThatCannotBeRemoved(t *testing.T) {
	for _, after := range []string{"0", "20ms"} {
		t.Run(after, func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_DOZE_AFTER", after)
			l := layer(t)
			c := shell(l, "a", "mkdir -p /v/d && chown 1000:1000 /v/d && chmod 700 /v/d && touch /x && echo ready && exec sleep 1000")
			c.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
			plan := newPlan([]pod.Container{shell(l, "i", "true")}, []pod.Container{c, shell(l, "b", "exec sleep 1000")})
			plan.ShareProcessNamespace = true
			plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
			w := startWhole(t, plan)
			w.until(running)
			_, keeper := w.processes()
			if after != "0" {
				w.asleep(keeper)
			}
			if err := unix.Kill(keeper, unix.SIGKILL); err != nil {
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
