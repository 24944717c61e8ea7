package relay

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestIsLocal(t *testing.T) {
	const usual, pods = 1448, 65468
	for _, c := range []struct {
		name    string
		rtt     uint32 // µs
		segment uint32
		want    bool
	}{
		{"on this machine", 20, usual, true},
		{"with jumbo frames", 40, 8948, true},
		{"the bound", 60, usual, true},
		{"in the same building", 150, usual, false},
		{"across a city", 1000, usual, false},
		{"a pod", 20, pods, false},
		{"a kernel that does not tell", 0, usual, false},
		{"nothing measured", 1<<32 - 1, usual, false},
	} {
		if got := isLocal(&unix.TCPInfo{Min_rtt: c.rtt, Rcv_mss: c.segment}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The lead of a local sender is limited, and a short message changes nothing.
func TestLocalSenderIsBounded(t *testing.T) {
	testenv.LoopbackUp(t)
	narrow(t)
	client, near := pair(t)
	for n := 0; n < 1000 && !quick(t, near); n++ { // on a busy host it may take several
		client, near = pair(t)
	}
	kept, err := near.File()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	raw, err := kept.SyscallConn() // Fd would make it blocking, for the loop too
	if err != nil {
		t.Fatal(err)
	}
	window := func() (n int) {
		cerr := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_WINDOW_CLAMP) })
		if cerr != nil || err != nil {
			t.Fatal(cerr, err)
		}
		return n
	}
	far, server := pair(t)
	over := make(chan struct{})
	go func() { defer close(over); newLoop(t).ProxyConns(near, far) }()
	before := window()
	client.Write([]byte("x"))
	if err := readOne(server); err != nil || before == localWindow || window() != before {
		t.Errorf("after a word: %v, %d bytes, before %d", err, window(), before)
	}
	const size = 8 << 20
	go func() {
		client.Write(make([]byte, size))
		client.Close()
	}()
	if n, err := io.Copy(io.Discard, server); err != nil || n != size {
		t.Errorf("%d bytes: %v", n, err)
	}
	if got := window(); got != localWindow {
		t.Errorf("a sender may be ahead by %d bytes, want %d", got, localWindow)
	}
	server.Close()
	await(t, over)
}

// quick reports whether the sender to an end counts as local.
func quick(t *testing.T, c *net.TCPConn) (is bool) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	cerr := raw.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO); err == nil {
			is = isLocal(info)
		}
	})
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	return is
}

// narrow makes the loopback's segments as small as on most devices until the test ends.
func narrow(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	request, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFMTU, request)
	}
	was := request.Uint32()
	if err == nil {
		request.SetUint32(1500)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFMTU, request)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		request.SetUint32(was)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, request); err != nil {
			t.Error(err)
		}
		unix.Close(fd)
	})
}
