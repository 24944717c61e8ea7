package egress

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/netns/relay"
)

// farSide begins to connect in the host's network.
func farSide(to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if fd, err = brief.Socket(family, unix.SOCK_STREAM); err != nil {
		return -1, err
	}
	if err = brief.Connect(fd, to, 0); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// makeSure has the kernel ask now and then whether the far side is still there.
func (c *connection) makeSure() {
	c.sure = true
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, 300}, {unix.SOL_TCP, unix.TCP_KEEPINTVL, 30}, {unix.SOL_TCP, unix.TCP_KEEPCNT, 6},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		_ = unix.SetsockoptInt(c.far, o.level, o.name, o.value) // it cannot fail for a socket of TCP
	}
}

// answerOf is what has become of an attempt to connect. The kernel connects a socket with
// itself where nobody listens to the port that it was given.
func (e *Egress) answerOf(c *connection, to netip.AddrPort) error {
	if err := relay.AnswerOf(c.far, c.told); err != nil || to.Port() < e.given {
		return err
	}
	own, err := relay.NameOf(c.far)
	if err == nil && own == to {
		err = unix.ECONNREFUSED
	}
	return err
}

// firstGiven is the first port that the kernel gives to sockets which ask for none.
func firstGiven() uint16 {
	var first, last uint16
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, serr := fmt.Sscan(string(b), &first, &last); err != nil || serr != nil {
		return 0 // each may be
	}
	return first
}
