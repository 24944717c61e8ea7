package egress

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns"
)

// What a pod sends in another's name reaches nobody, even if it fits a connection of that one.
func TestNobodySpeaksForAnother(t *testing.T) {
	w := newWorld(t)
	p, other := w.pod(1), w.pod(2)
	for _, at := range []string{remoteAddr + ":80", "[" + remoteAddr6 + "]:80"} {
		serve(t, listen(t, w.remote, at), echoAll)
		c, err := dial(p.ns, "tcp", at)
		if err == nil {
			err = exchange(c, []byte("word"))
		}
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		defer c.Close()
		end := resetOf(t, c)
		sendRaw(t, other.ns, end)
		if err := exchange(c, []byte("word")); err != nil {
			t.Errorf("%s: another pod has ended the connection: %v", at, err)
		}
		sendRaw(t, p.ns, resetOf(t, c))
		if exchange(c, []byte("word")) == nil {
			t.Errorf("%s: the pod's own reset does not end the connection: this test proves nothing", at)
		}
	}
}

// resetOf is a packet that ends a connection, as its client would send it now.
func resetOf(t *testing.T, c net.Conn) []byte {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	const sendQueue, off = 2, -1 // TCP_SEND_QUEUE, TCP_REPAIR_OFF_NO_WP (linux/tcp.h)
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, 1)
		if err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR_QUEUE, sendQueue)
		}
		if err == nil {
			number, err = unix.GetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_QUEUE_SEQ)
		}
		err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, off))
	})
	if err = errors.Join(cerr, err); err != nil {
		t.Fatal(err)
	}
	from, to := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, from.Port())
	binary.BigEndian.PutUint16(b[2:], to.Port())
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	b[12], b[13] = 5<<4, flagRST
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	seal(b[16:], src, dst, protoTCP, b)
	return ip(src, dst, protoTCP, b)
}

// sendRaw sends a packet from a namespace as it is.
func sendRaw(t *testing.T, ns string, b []byte) {
	t.Helper()
	p, _ := parse(b)
	err := netns.Do(ns, func() error {
		family := unix.AF_INET
		if p.src.Is6() {
			family = unix.AF_INET6
		}
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, netns.SockAddr(netip.AddrPortFrom(p.dst, 0)))
	})
	if err != nil {
		t.Fatal(err)
	}
}
