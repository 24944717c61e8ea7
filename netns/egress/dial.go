package egress

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// dialHost starts to connect in the host's network. If nothing listens on the port that the kernel
// has chosen for the socket, a connection to that port would be one of the socket with itself;
// dialHost prevents that.
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
		if local, nerr := relay.LocalAddr(fd); nerr == nil && local == to {
			err = unix.ECONNREFUSED
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		rawsys.Close(fd)
		return -1, err
	}
	return fd, nil
}

// enableKeepalive makes the kernel probe periodically whether the remote host is still there.
func (c *tcpConn) enableKeepalive() {
	c.keepalive = true
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, 300}, {unix.SOL_TCP, unix.TCP_KEEPINTVL, 30}, {unix.SOL_TCP, unix.TCP_KEEPCNT, 6},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		_ = unix.SetsockoptInt(c.host, o.level, o.name, o.value) // cannot fail for a TCP socket
	}
}

// firstEphemeralPort returns the first port that the kernel gives to sockets without an explicit
// port.
func firstEphemeralPort() uint16 {
	var first, last uint16
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, serr := fmt.Sscan(string(b), &first, &last); err != nil || serr != nil {
		return 0 // unknown: any port may be ephemeral
	}
	return first
}
