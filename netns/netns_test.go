package netns

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

func TestLoopbackUp(t *testing.T) {
	ns := testenv.Network(t)
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		if err := exchange(ns, addr); err == nil {
			t.Fatalf("%s works before: this test proves nothing", addr)
		}
	}
	if err := LoopbackUp(ns); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1:0", "127.1.2.3:0", "[::1]:0"} {
		if err := exchange(ns, addr); err != nil {
			t.Error(err)
		}
	}
	if err := LoopbackUp(ns); err != nil {
		t.Errorf("a second time: %v", err)
	}
	// The test's own namespace is unchanged.
	if err := exchange("/proc/self/ns/net", "127.0.0.1:0"); err == nil {
		t.Error("loopback is up in the caller's namespace")
	}
}

// exchange sends a message over a connection from addr to itself in a namespace. The sockets are
// made inside and used outside.
func exchange(ns, addr string) error {
	var l net.Listener
	var out net.Conn
	err := nsthread.Do(func() (err error) {
		if l, err = net.Listen("tcp", addr); err != nil {
			return err
		}
		out, err = dial(l.Addr().(*net.TCPAddr))
		return err
	}, ns)
	if l != nil {
		defer l.Close()
	}
	if err != nil {
		return err
	}
	in, err := l.Accept()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	defer in.Close()
	if _, err := out.Write([]byte("word")); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return err
	}
	b, err := io.ReadAll(in)
	if err == nil && string(b) != "word" {
		err = errors.New("received " + string(b))
	}
	return err
}

// dial connects on the calling goroutine: net.Dial may use others.
func dial(addr *net.TCPAddr) (net.Conn, error) {
	family, sa := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: addr.Port, Addr: [16]byte(addr.IP.To16())})
	if ip := addr.IP.To4(); ip != nil {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, sa); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

func TestErrorsNameTheNamespace(t *testing.T) {
	testenv.NoLeaks(t)
	for _, ns := range []string{"/proc/self/ns/none", "/etc/passwd"} {
		if err := LoopbackUp(ns); err == nil || !strings.Contains(err.Error(), ns) {
			t.Errorf("error %v, want one that names %s", err, ns)
		}
	}
}
