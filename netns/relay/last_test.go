package relay

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// What is said last and the end come in one packet.
func TestTheLastComesWithTheEnd(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	client, a := connected(t)
	b, server := connected(t)
	fda, err := Take(a)
	if err != nil {
		t.Fatal(err)
	}
	fdb, err := Take(b)
	if err != nil {
		t.Fatal(err)
	}
	server.Write([]byte("bye"))
	server.CloseWrite()
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fdb), Events: unix.POLLRDHUP}}, -1); err != nil {
		t.Fatal(err)
	}
	before := packetsTo(t, client)
	l := newLoop(t)
	l.Post(func() { l.Carry(fda, fdb, 0, func() {}) })
	if got, err := io.ReadAll(client); err != nil || string(got) != "bye" {
		t.Fatalf("%q: %v", got, err)
	}
	if n := packetsTo(t, client) - before; n != 1 {
		t.Errorf("it took %d packets", n)
	}
}

// packetsTo is how many packets a connection has been sent.
func packetsTo(t *testing.T, c *net.TCPConn) uint32 {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	cerr := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) })
	if cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return info.Segs_in
}
