package script

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/scriptcmd"
)

const executingPod = `
apiVersion: v1
kind: Pod
metadata: {name: executing}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{name: v, hostPath: {path: %s}}]
  containers:
  - {name: app, image: busybox, imagePullPolicy: Never, command: [/v/program], volumeMounts: [{name: v, mountPath: /v}]}
`

// TestSupervisorKilledDuringExec: the program of a container cannot be executed, and the supervisor
// is killed before it can report that; the test extends this moment. The next supervisor reports
// the same error, not an exit of the container.
func TestSupervisorKilledDuringExec(t *testing.T) {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	program := filepath.Join(t.TempDir(), "program")
	manifest := filepath.Join(h.dir, "pod.yaml")
	text := fmt.Sprintf(executingPod, filepath.Dir(program))
	if err := os.WriteFile(program, []byte("\x7fELF, but not quite"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// A process that opens a file with a lease waits, for 45 s, until the lease is given up.
	lease, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	up := h.podrun("up", "-d", manifest)
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	var podInit, supervisor, app int
	if !scriptcmd.Poll(func() bool {
		b, _ := os.ReadFile(filepath.Join(h.dir, "data/podrun/pods/default/executing/lock"))
		fmt.Sscan(string(b), &podInit)
		supervisor = childNamed(podInit, "podrun-superv")
		app = childNamed(supervisor, "podrun-execshim")
		return app != 0
	}) {
		t.Fatalf("nothing is executed: pod init %d, supervisor %d, app %d", podInit, supervisor, app)
	}
	for _, s := range []struct {
		pid int
		sig unix.Signal
	}{{podInit, unix.SIGSTOP}, {supervisor, unix.SIGKILL}} {
		if err := unix.Kill(s.pid, s.sig); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	ended := scriptcmd.Poll(func() bool { _, state := nameOf(app); return state == 'Z' })
	if err := unix.Kill(podInit, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !ended {
		t.Fatal("the program is executed for ever")
	}
	up.Wait()
	var is struct {
		Status struct {
			ContainerStatuses []struct {
				State struct {
					Terminated struct{ Reason, Message string }
				}
			}
		}
	}
	out, err := h.podrun("get", "pod", "executing", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &is)
	}
	if err != nil || len(is.Status.ContainerStatuses) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if end := is.Status.ContainerStatuses[0].State.Terminated; end.Reason != "StartError" || !strings.Contains(end.Message, "exec format error") {
		t.Errorf("the container has ended: %+v\n%s", end, out)
	}
}

// childNamed returns the child of a process with a name, or 0.
func childNamed(parent int, name string) int {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if is, _ := nameOf(pid); parent != 0 && is == name && parentOf(pid) == parent {
			return pid
		}
	}
	return 0
}

// nameOf returns a process's name and state from /proc, or "".
func nameOf(pid int) (name string, state byte) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), "(")
	name, rest, _ = strings.Cut(rest, ") ")
	if rest == "" {
		return "", 0
	}
	return name, rest[0]
}

func parentOf(pid int) (parent int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	var state string
	fmt.Sscan(rest, &state, &parent)
	return parent
}
