package egress

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// udpSessions are the pod's UDP sessions. Each has two sockets: one of the host's network that is
// connected to the remote address, and one in the router that is connected to the pod and has the
// remote address.
type udpSessions struct {
	mu      sync.Mutex
	closed  bool
	all     map[flow]*udpSession
	sockets map[*os.File]bool // of echo requests
	running sync.WaitGroup
}

// readDatagrams reads the first datagrams of sessions.
func (e *Proxy) readDatagrams(file *os.File) {
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	control := make([]byte, 128)
	for {
		err := raw.Read(func(fd uintptr) bool {
			e.reading.RLock()
			defer e.reading.RUnlock()
			held := buffers.Get().(*[maxDatagram]byte)
			defer buffers.Put(held)
			n, nc, _, from, err := unix.Recvmsg(int(fd), held[:], control, 0)
			if err == unix.EAGAIN {
				return false
			}
			if err == nil {
				e.handleDatagram(held[:n], control[:nc], from)
			}
			return true
		})
		if err != nil {
			return
		}
	}
}

// handleDatagram forwards a datagram that did not arrive at a session's own socket.
func (e *Proxy) handleDatagram(b, control []byte, from unix.Sockaddr) {
	f, ok := flowOf(control, from)
	if !ok {
		return
	}
	if e.isDNS(f.dst) {
		e.serveDNSDatagram(f, bytes.Clone(b))
		return
	}
	e.udp.mu.Lock()
	c := e.udp.all[f]
	e.udp.mu.Unlock()
	if c == nil {
		if c = e.openSession(f); c == nil {
			return
		}
	}
	c.lastUsed.Store(time.Now().Unix())
	if _, err := c.host.Write(b); err != nil {
		e.replyError(f, err)
	}
}

// flowOf reads the source and the destination of a datagram; ok is false if it has no source that
// could be answered: connecting to an unspecified address means connecting to oneself.
func flowOf(control []byte, from unix.Sockaddr) (f flow, ok bool) {
	switch s := from.(type) {
	case *unix.SockaddrInet4:
		f.src = netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		f.src = netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port))
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return f, false
	}
	for _, m := range messages {
		switch s, err := unix.ParseOrigDstAddr(&m); d := s.(type) {
		case *unix.SockaddrInet4:
			f.dst = netip.AddrPortFrom(netip.AddrFrom4(d.Addr), uint16(d.Port))
		case *unix.SockaddrInet6:
			f.dst = netip.AddrPortFrom(netip.AddrFrom16(d.Addr), uint16(d.Port))
		default:
			_ = err // another kind of message
		}
	}
	src := f.src.Addr()
	return f, f.dst.IsValid() && src.IsValid() && !src.IsUnspecified() && !src.IsLinkLocalUnicast()
}

// replyError reports to the pod that a datagram was not delivered.
func (e *Proxy) replyError(f flow, err error) {
	p := udpPacket(f)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		e.inject(icmpUnreachable(p, f.dst.Addr(), noPort))
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		e.inject(e.errorReply(p, err))
	}
}

// openSession starts a session, or returns nil.
func (e *Proxy) openSession(f flow) *udpSession {
	to, ok := e.hostTarget("UDP", f.dst)
	if !ok {
		e.replyError(f, unix.ENETUNREACH)
		return nil
	}
	if !e.acquireFlow() {
		e.udp.closeOldest() // for the next datagram
		return nil
	}
	far, err := net.Dial("udp", to.String())
	if err != nil {
		e.releaseFlow()
		e.replyError(f, err)
		return nil
	}
	var near *net.UDPConn
	err = e.router.Do(func() (err error) { near, err = dialTransparent(f.dst, f.src); return err })
	if err != nil {
		far.Close()
		e.releaseFlow()
		return nil
	}
	c := &udpSession{pod: near, host: far.(*net.UDPConn)}
	c.lastUsed.Store(time.Now().Unix())
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed {
		c.close()
		e.releaseFlow()
		return nil
	}
	e.udp.all[f] = c
	e.udp.running.Go(func() { e.runSession(f, c) })
	return c
}

// closeOldest makes room: it ends the session that has been idle for longest.
func (c *udpSessions) closeOldest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest *udpSession
	var of flow
	for f, x := range c.all {
		if oldest == nil || x.lastUsed.Load() < oldest.lastUsed.Load() {
			oldest, of = x, f
		}
	}
	if oldest != nil {
		oldest.close()
		delete(c.all, of)
	}
}

// add registers the socket of an echo request, so that close closes it.
func (c *udpSessions) add(socket *os.File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.sockets == nil {
		c.sockets = map[*os.File]bool{}
	}
	c.sockets[socket] = true
	return true
}

func (c *udpSessions) remove(socket *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sockets, socket)
}

// close ends all sessions and echo requests.
func (c *udpSessions) close() {
	c.mu.Lock()
	c.closed = true
	for _, x := range c.all {
		x.close()
	}
	for s := range c.sockets {
		s.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// udpSession is a UDP session of the pod.
type udpSession struct {
	pod, host *net.UDPConn
	lastUsed  atomic.Int64 // time of the last datagram: seconds
	answered  atomic.Bool
}

// How long an idle session lasts: the kernel's own timeouts for address translation
// (nf_conntrack_udp_timeout, _stream).
const (
	unansweredTimeout = 30 * time.Second
	answeredTimeout   = 120 * time.Second
)

// maxDatagram exceeds the length of every datagram.
const maxDatagram = 1 << 16

var buffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// dialTransparent makes a transparent socket with the address local, which belongs to another host, and
// connects it to the pod. The calling thread is in the router.
func dialTransparent(local, remote netip.AddrPort) (*net.UDPConn, error) {
	domain, level, transparent := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if local.Addr().Is6() {
		domain, level, transparent = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "session")
	defer file.Close()
	err = unix.SetsockoptInt(fd, level, transparent, 1)
	if err == nil { // other pods, and other ports of this one, share the address
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, rawsys.Sockaddr(local))
	}
	if err == nil {
		err = unix.Connect(fd, rawsys.Sockaddr(remote))
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

// runSession forwards datagrams in both directions until the session is idle.
func (e *Proxy) runSession(f flow, c *udpSession) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.pump(c.host, c.pod, func(err error) { e.replyError(f, err) }, nil)
		c.close()
	}()
	// The pod gets an error for a refusal of the remote host when the host's kernel gets it.
	c.pump(c.pod, c.host, nil, func(err error) { e.replyError(f, err) })
	c.close()
	<-done
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.all[f] == c {
		delete(e.udp.all, f)
	}
	e.releaseFlow()
}

func (c *udpSession) close() {
	c.pod.Close()
	c.host.Close()
}

// expiry reports whether the session has been idle long enough, and until when it lasts.
func (c *udpSession) expiry() (until time.Time, over bool) {
	patience := unansweredTimeout
	if c.answered.Load() {
		patience = answeredTimeout
	}
	until = time.Unix(c.lastUsed.Load(), 0).Add(patience)
	return until, !time.Now().Before(until)
}

// pump forwards one direction. It holds a buffer only while there is data in it.
func (c *udpSession) pump(dst, src *net.UDPConn, onWriteError, onReadError func(error)) {
	raw, err := src.SyscallConn()
	if err != nil {
		return
	}
	for {
		until, over := c.expiry()
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
			c.lastUsed.Store(time.Now().Unix())
			if src == c.host {
				c.answered.Store(true)
			}
			if _, err := dst.Write(held[:n]); err != nil && onWriteError != nil {
				onWriteError(err)
			}
			return true
		})
		if failed != nil && onReadError != nil {
			onReadError(failed)
		}
		if err != nil && !os.IsTimeout(err) {
			return
		}
	}
}
