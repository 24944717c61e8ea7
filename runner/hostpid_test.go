package runner

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/testenv"
)

// hostPIDPod returns a pod in this test's PID namespace, whose container leaves a daemon with another
// parent behind.
func hostPIDPod(t *testing.T, apart bool) wholePod {
	t.Helper()
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "echo $$ >/pid; (sh -c 'echo $$ >/daemon; exec sleep 4321' & ); until test -s /daemon; do usleep 1000; done; cat /daemon; exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
	plan.HostPID, plan.OwnUserNS, plan.RestartPolicy = true, apart, pod.RestartAlways
	w := startWhole(t, plan)
	w.until(running)
	return w
}

// daemon waits for the daemon of the nth instance of the container and returns its pid.
func (w wholePod) daemon(n int) (pid int) {
	w.t.Helper()
	for deadline := time.Now().Add(patient); ; {
		text := logText(w.t, w.place, "a", n)
		if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			return pid
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no daemon: %q", text)
		}
	}
}

// lives reports whether a process exists and is no zombie.
func lives(pid int) bool {
	st, ok := procfs.Lookup(pid)
	return ok && st.State != 'Z'
}

// With hostPID a container sees the processes of the user that started the pod, and none of podrun's files.
// What it leaves behind is killed with the container or the pod, and stays when only a supervisor has died.
func TestHostPID(t *testing.T) {
	testenv.NoLeaks(t)
	w := hostPIDPod(t, true)
	_, out := w.ask("b", "/bin/sh", "-c", "readlink /proc/self/ns/pid; cat /proc/"+strconv.Itoa(os.Getpid())+"/comm; kill -0 "+strconv.Itoa(os.Getpid())+" && echo seen; ls /proc/1/root 2>&1; echo x 2>/dev/null >/proc/sys/kernel/core_pattern || echo read-only")
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out, namespace+"\n") || !strings.Contains(out, "seen\n") || !strings.Contains(out, "read-only\n") {
		t.Errorf("in %s: %s", namespace, out)
	}
	if _, out := w.ask("b", "/bin/sh", "-c", fmt.Sprintf("ls /proc/%d/root/ 2>&1", os.Getpid())); !strings.Contains(out, "ermission denied") {
		t.Errorf("files of another's: %s", out)
	}
	daemon := w.daemon(0)
	b := withName(newPlan(nil, []pod.Container{shell(layer(t), "c", "exec sleep 1000")}), "other")
	other := w.neighbourOf(b, "other")
	other.until(running)
	parent, _ := other.processes()
	if _, out := w.ask("b", "/bin/sh", "-c", fmt.Sprintf("for p in /proc/[0-9]*; do grep -q '^PPid:.%d$' $p/status && ls $p/root/ $p/fd; done 2>&1", parent)); strings.Contains(out, "bin") || !strings.Contains(out, "ermission denied") {
		t.Errorf("files of another pod's: %s", out)
	}
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, out := w.ask("b", "/bin/true"); code != 0 {
		t.Fatalf("after its supervisor: %s", out)
	}
	if !lives(daemon) {
		t.Error("what a container had left ended with a supervisor")
	}
	w.ask("a", "/bin/sh", "-c", "kill -9 $(cat /pid)")
	w.until(func(st *pod.Status) bool { return st.Containers[0].RestartCount > 0 && running(st) })
	if lives(daemon) {
		t.Error("what a container had left outlived it")
	}
	if next := w.daemon(1); !lives(next) {
		t.Error("the next one's ended with it")
	}
}

// When pod init or the monitor is killed, no process of that sandbox is left in the host's PID namespace.
func TestHostPIDKilled(t *testing.T) {
	testenv.NoLeaks(t)
	w := hostPIDPod(t, false)
	daemon := w.daemon(0)
	_, podInit := w.processes()
	if err := unix.Kill(podInit, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.untilAgain("it goes on", func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount > 0 })
	if lives(daemon) {
		t.Error("what a container had left outlived the pod init")
	}
	// The monitor's death ends the pod: if pod init were killed too, no other process could.
	_, podInit = w.processes()
	st, ok := procfs.Lookup(podInit)
	if !ok {
		t.Fatal("no pod init")
	}
	daemon = w.daemon(1)
	if err := unix.Kill(st.PPID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patient); lives(daemon) || w.place.Alive(); {
		if time.Now().After(deadline) {
			t.Fatalf("after the monitor has ended: the daemon lives %v, the pod %v", lives(daemon), w.place.Alive())
		}
	}
}

// A supervisor may outlive its pod init for a moment; here the monitor is stopped to make that long. What
// the supervisor observes then is not recorded: neither what ends with the sandbox nor what fails without
// pod init, from which a pod would never recover.
func TestSupervisorWithoutItsPodInit(t *testing.T) {
	testenv.NoLeaks(t)
	w := hostPIDPod(t, false)
	supervisor, podInit := w.processes()
	monitor := w.monitorOf(podInit)
	record := func() string {
		b, err := os.ReadFile(recordOf(w.place))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	conn := w.dial() // keeps it from hibernating
	defer conn.Close()
	if err := unix.Kill(monitor, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(monitor, unix.SIGCONT)
	was := record()
	kill9(t, podInit)
	for deadline := time.Now().Add(patient); lives(podInit); idle(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the pod init does not end")
		}
	}
	// The first process of container a is the supervisor's child.
	for _, pid := range childrenOf(supervisor) {
		if b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); string(b) == "sleep\x001000\x00" {
			kill9(t, pid)
		}
	}
	for deadline := time.Now().Add(patient); lives(supervisor); idle(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the supervisor does not end")
		}
	}
	if now := record(); now != was {
		t.Errorf("it has put on record\n%s\nafter\n%s", now, was)
	}
	if err := unix.Kill(monitor, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.untilAgain("it goes on", func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
}
