package egress

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns"
)

// conversation is one that the pod has with another by UDP.
type conversation struct {
	near, far *net.UDPConn
	last      atomic.Int64 // when something was said: seconds
	answered  atomic.Bool
}

// How long a conversation lasts in which nothing is said: the kernel's own figures for
// what it translates (nf_conntrack_udp_timeout, _stream).
const (
	unanswered = 30 * time.Second
	answered   = 120 * time.Second
)

// A datagram is at most so long.
const maxDatagram = 1 << 16

var buffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// inNameOf makes a socket that has an address of others and is connected to the pod. The
// calling thread is in the router.
func inNameOf(local, remote netip.AddrPort) (*net.UDPConn, error) {
	domain, level, transparent := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if local.Addr().Is6() {
		domain, level, transparent = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "conversation")
	defer file.Close()
	err = unix.SetsockoptInt(fd, level, transparent, 1)
	if err == nil { // with other pods, and other ports of this one
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, netns.SockAddr(local))
	}
	if err == nil {
		err = unix.Connect(fd, netns.SockAddr(remote))
	}
	if err != nil {
		return nil, err
	}
	c, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// talk passes on what both say until nothing is said any more.
func (e *Egress) talk(f flow, c *conversation) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.carry(c.far, c.near, func(err error) { e.excuseDatagram(f, err) }, nil)
		c.close()
	}()
	// Of a far side that refuses the pod hears when the host's kernel does.
	c.carry(c.near, c.far, nil, func(err error) { e.excuseDatagram(f, err) })
	c.close()
	<-done
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.all[f] == c {
		delete(e.udp.all, f)
	}
	e.end()
}

func (c *conversation) close() {
	c.near.Close()
	c.far.Close()
}

// silent says whether the conversation has lasted long enough without a word, and if not,
// until when to wait.
func (c *conversation) silent() (until time.Time, over bool) {
	patience := unanswered
	if c.answered.Load() {
		patience = answered
	}
	until = time.Unix(c.last.Load(), 0).Add(patience)
	return until, !time.Now().Before(until)
}

// carry is one direction. A buffer is held while there is something in it.
func (c *conversation) carry(dst, src *net.UDPConn, unsent, unread func(error)) {
	raw, err := src.SyscallConn()
	if err != nil {
		return
	}
	for {
		until, over := c.silent()
		if over {
			return
		}
		src.SetReadDeadline(until)
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			held := buffers.Get().(*[maxDatagram]byte)
			defer buffers.Put(held)
			n, err := unix.Read(int(fd), held[:])
			if err == unix.EAGAIN {
				return false
			}
			if failed = err; err != nil {
				return true
			}
			c.last.Store(time.Now().Unix())
			if src == c.far {
				c.answered.Store(true)
			}
			if _, err := dst.Write(held[:n]); err != nil && unsent != nil {
				unsent(err)
			}
			return true
		})
		if failed != nil && unread != nil {
			unread(failed)
		}
		if err != nil && !os.IsTimeout(err) {
			return
		}
	}
}
