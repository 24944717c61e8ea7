// Package relay joins two TCP connections into one: bytes, half-closes and resets pass through, and
// an idle connection holds no buffer.
package relay

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// ProxyConns forwards data between a and b until both have ended, closes both and returns. A reset
// of one side resets the other, as does the end of the loop.
func (l *Loop) ProxyConns(a, b *net.TCPConn) {
	fda, err := TakeFD(a)
	fdb, berr := TakeFD(b)
	over := make(chan struct{})
	if err == nil && berr == nil && l.Post(func() { l.Proxy(fda, fdb, 0, func() { close(over) }) }) {
		<-over
		return
	}
	if err == nil {
		ResetFD(fda)
	}
	if berr == nil {
		ResetFD(fdb)
	}
}

// TakeFD takes a connection's descriptor from Go's poller: it does not block. If no descriptor is
// left the connection is reset.
func TakeFD(c *net.TCPConn) (fd int, err error) {
	if fd, err = rawsys.Dup(c); err != nil {
		Reset(c)
		return -1, err
	}
	c.Close()
	return fd, nil
}

// Reset closes a connection so that the other side sees a reset.
func Reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// ResetFD is Reset for a descriptor.
func ResetFD(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	rawsys.Close(fd)
}
