package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// asleep waits until the pod has no supervisor.
func (w wholePod) asleep(keeper int) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// An emulated machine with others beside it is slow.
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-tick.C {
		if supervisorOf(keeper) == 0 {
			return
		}
	}
	w.t.Fatalf("the supervisor of keeper %d does not sleep within 2 minutes", keeper)
}

// awake waits until the pod has a supervisor, and returns it.
func (w wholePod) awake(keeper int) int {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if pid := supervisorOf(keeper); pid != 0 {
			return pid
		}
	}
	w.t.Fatalf("keeper %d has no supervisor within a minute", keeper)
	return 0
}

// drowsy starts a pod whose supervisor dozes as soon as it is quiet.
func drowsy(t *testing.T, plan *pod.Plan) (w wholePod, keeper int) {
	t.Helper()
	t.Setenv("PODRUN_DOZE_AFTER", "20ms")
	w = startWhole(t, plan)
	w.until(running)
	_, keeper = w.processes()
	w.asleep(keeper)
	return w, keeper
}

func (w wholePod) ask(container string, args ...string) (int, string) {
	return (&testPod{t: w.t, place: w.place}).request(&wire.ExecRequest{Container: container, Args: args})
}

// A pod whose supervisor dozes answers as ever, and its supervisor dozes again.
func TestDozingSupervisorAnswers(t *testing.T) {
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
	w, keeper := drowsy(t, plan)
	for range 3 {
		if code, out := w.ask("a", "/bin/sh", "-c", "id -u; cat /proc/1/comm; exit 7"); code != 7 || out != "1000\npodrun-pause\n" {
			t.Errorf("exec woke it to %d %q", code, out)
		}
		w.asleep(keeper)
	}
	w.until(func(st *pod.Status) bool {
		if !running(st) || st.Containers[0].RestartCount != 0 {
			t.Errorf("status after sleep: %+v", st)
		}
		return true
	})
	// A line that began before the sleep and ends after it is one line.
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
	w.asleep(keeper)
}

// What happens to a container while the supervisor dozes is seen: its end with its
// code, its restart, and a stop.
func TestDozingSupervisorSeesTheEnd(t *testing.T) {
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
	w, keeper := drowsy(t, plan)
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
	w.asleep(keeper)
	conn := w.dial()
	defer conn.Close()
	w.awake(keeper)
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(keeper, unix.SIGTERM); err != nil { // as systemd stops a pod
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

// SIGTERM itself wakes and stops.
func TestDozingSupervisorStopsOnSignal(t *testing.T) {
	testenv.NoLeaks(t)
	w, keeper := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "trap 'exit 3' TERM; while :; do sleep 0.01; done")}))
	if err := unix.Kill(keeper, unix.SIGTERM); err != nil {
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
