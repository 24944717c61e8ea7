package testenv

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// NewNamespaces starts a process in new namespaces (unix.CLONE_NEWNET and the like) that lives
// until the test has ended. It returns the process's directory in /proc: the namespaces are its
// ns/net and so on.
func NewNamespaces(t testing.TB, cloneFlags uintptr) string {
	t.Helper()
	cmd := exec.Command("cat") // until its input ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneFlags}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("make namespaces: %v", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("end the process that holds namespaces: %v", err)
		}
	})
	return fmt.Sprintf("/proc/%d", cmd.Process.Pid)
}

// Network returns the path of a new network namespace, like a pod's. It fails a test that leaves
// something behind, including threads in other namespaces.
func Network(t testing.TB) string {
	t.Helper()
	NoLeaks(t)
	return NewNamespaces(t, unix.CLONE_NEWNET) + "/ns/net"
}

// LoopbackUp brings up lo in the network that Main has made for the tests.
func LoopbackUp(t testing.TB) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("bring up loopback: %v", err)
	}
}
