package egress

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// dialHost begins to connect in the host's network. The kernel connects a socket with itself where nobody
// listens to the port that it was given.
func (e *Proxy) dialHost(to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if fd, err = rawsys.Socket(family, unix.SOCK_STREAM); err != nil {
		return -1, err
	}
	err = rawsys.Connect(fd, to, 0)
	if to.Port() >= e.firstEphemeral && (err == nil || err == unix.EINPROGRESS) {
		if own, nerr := relay.LocalAddr(fd); nerr == nil && own == to {
			err = unix.ECONNREFUSED
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		rawsys.Close(fd)
		return -1, err
	}
	return fd, nil
}

// enableKeepalive has the kernel ask now and then whether the far side is still there.
func (c *tcpConn) enableKeepalive() {
	c.keepalive = true
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, 300}, {unix.SOL_TCP, unix.TCP_KEEPINTVL, 30}, {unix.SOL_TCP, unix.TCP_KEEPCNT, 6},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		_ = unix.SetsockoptInt(c.host, o.level, o.name, o.value) // it cannot fail for a socket of TCP
	}
}

// firstEphemeralPort is the first port that the kernel gives to sockets which ask for none.
func firstEphemeralPort() uint16 {
	var first, last uint16
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, serr := fmt.Sscan(string(b), &first, &last); err != nil || serr != nil {
		return 0 // each may be
	}
	return first
}
