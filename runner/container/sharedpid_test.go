package container

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// inMountNamespace starts a process in a mount namespace of its own, and returns that namespace.
func inMountNamespace(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, ns
}

// The kernel soon reuses the number of a deleted mount namespace: what is left of an exited container is
// killed, but nothing of another one that is being made.
func TestMountNamespaceNumbersAreUsedAgain(t *testing.T) {
	testenv.NoLeaks(t)
	box := &sandbox.Sandbox{PauseProcess: procfs.Process{PID: 1}}
	first, ns := inMountNamespace(t)
	st, _ := procfs.Lookup(first.Process.Pid)
	x := &Container{Process: st.Process, mntns: ns}
	if !x.pinMountNamespace(box) {
		t.Fatal("the mount namespace of a living process is not held")
	}
	first.Process.Kill()
	first.Wait()
	for range 16 {
		if _, other := inMountNamespace(t); other == ns {
			t.Fatal("the number is another's while the namespace is held")
		}
	}
	x.killByMountNamespace()

	// The supervisor that follows a killed one has only the number.
	young, ns := inMountNamespace(t)
	st, _ = procfs.Lookup(young.Process.Pid)
	later := handoff.RunningInstance{Process: st.Process, MountNS: ns}
	x = &Container{Process: procfs.Process{PID: first.Process.Pid, StartTime: x.StartTime}, mntns: ns}
	if x.findMountNamespace(box, []handoff.RunningInstance{later}); x.mntnsFile != nil {
		t.Error("a later container's mount namespace is taken for an ended container's")
	}
	x.killByMountNamespace()
	if st, ok := procfs.Lookup(young.Process.Pid); !ok || st.Exiting {
		t.Error("a later container's process was killed")
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	x.mntns = own
	if x.findMountNamespace(box, nil); x.mntnsFile != nil {
		t.Error("the supervisor's mount namespace is taken for an ended container's")
	}
	x.mntns = ns
	x.findMountNamespace(box, nil)
	x.killByMountNamespace()
	if st, ok := procfs.Lookup(young.Process.Pid); ok && !st.Exiting {
		t.Error("what is left of a container that has ended lives on")
	}
}
