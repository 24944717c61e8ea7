package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// S27: only the pod's user reaches its socket.
func TestControlSocketIsPrivate(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	for path, want := range map[string]os.FileMode{
		w.place.RuntimeDir(): 0o700, w.place.DataDir(): 0o700,
		filepath.Join(w.place.RuntimeDir(), "control.sock"): 0o600,
	} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v: %v", path, st.Mode().Perm(), want, err)
		}
	}
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil || strings.Contains(string(b), "@") {
		t.Errorf("there is an abstract socket: %v\n%s", err, b)
	}
	// Even with the directories open to all, another user gets no answer.
	err = asOtherUser(w)
	if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("another user's request: %v", err)
	}
}

// asOtherUser asks for the status on a connection made with another user's id.
func asOtherUser(w wholePod) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	if err := os.Chmod(filepath.Join(w.place.RuntimeDir(), "control.sock"), 0o666); err != nil {
		return err
	}
	addr := &unix.SockaddrUnix{Name: shortPath(w)}
	result := make(chan error)
	go func() { // only this thread's ids change, and it ends with them
		runtime.LockOSThread()
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 1000, ^uintptr(0)); e != 0 {
			result <- e
			return
		}
		result <- errors.Join(raiseCapabilities(), unix.Connect(fd, addr))
	}()
	if err := <-result; err != nil {
		return err
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer conn.Close()
	uc := conn.(*net.UnixConn)
	if err := wire.WriteRequest(uc, wire.Request{Verb: wire.Watch}); err != nil {
		return err
	}
	_, _, err = wire.ReadFrame(uc)
	return err
}

// shortPath is the socket's address by way of its open directory.
func shortPath(w wholePod) string {
	dir, err := os.Open(w.place.RuntimeDir())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	return fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd())
}

// raiseCapabilities gives the thread back what the change of its user has taken,
// so that the way to the socket is open to it.
func raiseCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Effective, data[1].Effective = data[0].Permitted, data[1].Permitted
	return unix.Capset(&head, &data[0])
}
