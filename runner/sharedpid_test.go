package runner

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

// inMountNamespace starts a process in a mount namespace of its own, and says which.
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

// The number of a mount namespace that has gone is soon another's: what is left of a
// container that has ended is killed, and nothing of another that is being made.
func TestMountNamespaceNumbersAreUsedAgain(t *testing.T) {
	testenv.NoLeaks(t)
	box := &sandbox{pause: process{PID: 1}}
	first, ns := inMountNamespace(t)
	st, _ := stat(first.Process.Pid)
	x := &container{process: st.process, mntns: ns}
	if !x.holdMountNamespace(box) {
		t.Fatal("the mount namespace of a living process is not held")
	}
	first.Process.Kill()
	first.Wait()
	for range 16 {
		if _, other := inMountNamespace(t); other == ns {
			t.Fatal("the number is another's while the namespace is held")
		}
	}
	x.killMountNamespace()

	// Of a supervisor that was killed, the next one knows the number.
	young, ns := inMountNamespace(t)
	st, _ = stat(young.Process.Pid)
	later := savedRun{process: st.process, MountNS: ns}
	x = &container{process: process{PID: first.Process.Pid, Start: x.Start}, mntns: ns}
	if x.findMountNamespace(box, []savedRun{later}); x.mounts != nil {
		t.Error("a later container's mount namespace is taken for that of one that has ended")
	}
	x.killMountNamespace()
	if st, ok := stat(young.Process.Pid); !ok || st.ending {
		t.Error("a later container's process was killed")
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	x.mntns = own
	if x.findMountNamespace(box, nil); x.mounts != nil {
		t.Error("the supervisor's mount namespace is taken for that of a container that has ended")
	}
	x.mntns = ns
	x.findMountNamespace(box, nil)
	x.killMountNamespace()
	if st, ok := stat(young.Process.Pid); ok && !st.ending {
		t.Error("what is left of a container that has ended lives on")
	}
}
