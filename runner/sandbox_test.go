package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// A System V segment that one container makes is visible to all containers of the pod, outlives its
// creator, and is visible to no other pod.
func TestPodSharesSystemVMemory(t *testing.T) {
	testenv.NoLeaks(t)
	const key, size = 0x706f64, 12345
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 2000")})
	plan.RestartPolicy = pod.RestartAlways
	w := startWhole(t, plan)
	w.until(running)
	a := processOf(t, "sleep\x001000\x00")
	err := nsthread.Do(func() error {
		if _, _, errno := unix.Syscall(unix.SYS_SHMGET, key, size, unix.IPC_CREAT|0o600); errno != 0 {
			return errno
		}
		return nil
	}, fmt.Sprintf("/proc/%d/ns/ipc", a))
	if err != nil {
		t.Fatalf("make a segment as container a: %v", err)
	}
	if err := unix.Kill(a, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
	want := fmt.Sprint(size)
	for _, c := range []string{"a", "b"} {
		if code, out := w.ask(c, "/bin/cat", "/proc/sysvipc/shm"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("container %s sees the segments %q, want one of %s bytes", c, out, want)
		}
	}
	if ours, err := os.ReadFile("/proc/sysvipc/shm"); err != nil || strings.Contains(string(ours), want) {
		t.Errorf("the segment is the host's too: %q, %v", ours, err)
	}
}

// processOf waits for the process with a command line, its arguments each ended by NUL.
func processOf(t *testing.T, cmdline string) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if b, err := os.ReadFile(path); err == nil && string(b) == cmdline {
				var pid int
				fmt.Sscanf(path, "/proc/%d/", &pid)
				return pid
			}
		}
	}
	t.Fatalf("there is no process %q", cmdline)
	return 0
}

// Orphans in the pod's own PID namespace become children of pod init, which reaps them.
func TestPodInitReapsOrphans(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	supervisor, podInit := w.processes()
	// The shell exits before its children, and they at once after it.
	script := "for i in 1 2 3 4 5; do sleep 0.1 & done"
	cmd := exec.Command("nsenter", "--pid", "--target", fmt.Sprint(podInit), "sh", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make orphans: %v: %s", err, out)
	}
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = children(t, podInit, supervisor); len(left) == 0 {
			return
		}
	}
	t.Errorf("the pod init has not reaped: %s", strings.Join(left, "; "))
}

// children returns the processes whose parent is pid, except one.
func children(t *testing.T, pid, but int) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) > 1 && f[1] == fmt.Sprint(pid) && !strings.HasPrefix(string(b), fmt.Sprint(but)+" ") {
			found = append(found, string(b))
		}
	}
	return found
}
