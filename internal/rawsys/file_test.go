package rawsys_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
)

// port returns a listening socket and a duplicate of it, which is a file.
func port(t *testing.T) (listener, copied int, file *os.File) {
	t.Helper()
	listener, _ = listen(t, unix.AF_INET, "127.0.0.1:0")
	copied, err := unix.FcntlInt(uintptr(listener), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	return listener, copied, os.NewFile(uintptr(copied), "port")
}

// Unpolled returns the same file, which does not block and which Go does not poll.
func TestUnpolled(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	listener, copied, old := port(t)
	if !testenv.IsWaitedFor(t, copied) {
		t.Fatal("Go does not wait for what it may")
	}
	file, fd, err := rawsys.Unpolled(old)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if testenv.IsWaitedFor(t, fd) || testenv.IsWaitedFor(t, copied) {
		t.Error("Go waits for it")
	}
	if nameOf(t, fd) != nameOf(t, listener) || file.Name() != "port" {
		t.Errorf("it is another: %s", file.Name())
	}
	if _, _, err := unix.Accept(fd); err != unix.EAGAIN {
		t.Errorf("it blocks: %v", err)
	}
}

// If no descriptor is left, Unpolled returns the old file.
func TestUnpolledWithoutDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	listener, _, old := port(t)
	defer old.Close()
	testenv.WithDescriptors(t, 0, func() {
		if file, _, err := rawsys.Unpolled(old); err == nil || file != old {
			t.Errorf("%v, %v", file, err)
		}
	})
	if _, _, err := unix.Accept(listener); err != unix.EAGAIN {
		t.Errorf("it blocks: %v", err)
	}
}
