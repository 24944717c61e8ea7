package nsthread

import (
	"fmt"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// otherNetwork makes a network namespace with a loopback and returns its path.
func otherNetwork(t *testing.T) string {
	t.Helper()
	var file *os.File
	err := Do(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if err := Do(func() error { testenv.LoopbackUp(t); return nil }, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSocketsOfAnotherNetwork: connections start in the pod's network, whichever goroutine makes
// them, by IPv4 and IPv6, and one thread enters it for several of them.
func TestSocketsOfAnotherNetwork(t *testing.T) {
	testenv.NoLeaks(t)
	there := otherNetwork(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		var listener net.Listener
		err := Do(func() (err error) {
			listener, err = net.Listen("tcp", address)
			return err
		}, there)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		s := Sockets{Files: []string{there}}
		defer s.Close()
		dialer := net.Dialer{Control: s.control}
		for i := range socketBatch + 1 {
			if i == 1 {
				s.Files = []string{"/no/such/namespace"} // no thread needs to enter it
			}
			if i == socketBatch {
				if _, err := dialer.Dial("tcp", listener.Addr().String()); err == nil {
					t.Error("there are more sockets than were made")
				}
				break
			}
			conn, err := dialer.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		}
		if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
			conn.Close()
			t.Error("the server is in this network, too: that says nothing")
		}
	}
}

// TestSocketsHere: in the host's network there is nothing to replace.
func TestSocketsHere(t *testing.T) {
	testenv.LoopbackUp(t)
	testenv.NoLeaks(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var s Sockets
	conn, err := (&net.Dialer{Control: s.control}).Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if len(s.spare) > 0 {
		t.Error("sockets were made that nobody needs")
	}
}
