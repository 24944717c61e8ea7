package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/relay"
)

// connections are those of the pod, from the first packet until both ends have ended: a
// packet that is sent again is never taken for a new connection.
type connections struct {
	// The loop's.
	all     map[flow]*connection
	waiting bool  // the loop looks after those that are not joined yet
	starved []int // listening sockets that wait for descriptors

	mu     sync.Mutex
	closed bool
	names  map[*net.TCPConn]bool // with the resolver
	over   sync.WaitGroup
}

// connection is one of the pod's.
type connection struct {
	number uint32 // that its first packet begins with
	far    int    // descriptor of the socket in the host's network
	state  state
	until  time.Time // when to give up what has not been joined
}

// state is how far a connection has come.
type state byte

const (
	connecting state = iota // to the far side
	accepting               // the pod's part of the handshake
	joined
)

const (
	// connectTime is longer than the kernel's own patience (tcp_syn_retries), which is
	// the pod's too.
	connectTime = 3 * time.Minute
	// acceptTime is how long the pod may take for its part of the handshake.
	acceptTime = 30 * time.Second
)

// open answers the first packet of a connection.
func (e *Egress) open(f flow, p packet) {
	old := e.tcp.all[f]
	if old != nil && old.number == p.sequence() {
		if old.state == accepting {
			e.inject(p.raw) // it got lost on the way back
		}
		return
	}
	if old != nil && old.state != joined {
		e.drop(f, old) // which the pod has given up
	}
	to, ok := e.target(f.dst)
	if !ok {
		e.inject(unreach(p, e.gateway(p), noRoute))
		return
	}
	if !e.begin() {
		return // it will be sent again
	}
	fd, err := farSide(to)
	if err != nil {
		e.end()
		e.fail(p, err)
		return
	}
	c := &connection{number: p.sequence(), far: fd, until: time.Now().Add(connectTime)}
	e.tcp.all[f] = c // in the place of one that has just ended, perhaps
	first := p.clone()
	if err := e.loop.Watch(fd, relay.Writable|relay.Once, func(uint32) { e.connected(f, c, first) }); err != nil {
		e.drop(f, c)
		return
	}
	if !e.tcp.waiting {
		e.tcp.waiting = true
		e.loop.Tick(e.lookAfter)
	}
}

// farSide begins to connect in the host's network. A partner that is silently gone is found
// out.
func farSide(to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, 300}, {unix.SOL_TCP, unix.TCP_KEEPINTVL, 30}, {unix.SOL_TCP, unix.TCP_KEEPCNT, 6},
	} {
		if err == nil {
			err = unix.SetsockoptInt(fd, o.level, o.name, o.value)
		}
	}
	if err == nil {
		err = unix.Connect(fd, netns.SockAddr(to))
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connected is told that the far side has answered, or has not; only if it has the pod has a
// partner.
func (e *Egress) connected(f flow, c *connection, first packet) {
	if err := e.answerOf(c.far, f.dst.Port()); err != nil {
		e.drop(f, c)
		e.fail(first, err)
		return
	}
	c.state, c.until = accepting, time.Now().Add(acceptTime)
	e.inject(first.raw)
}

// answerOf is what has become of an attempt to connect. The kernel connects a socket with
// itself where nobody listens to the port that it was given.
func (e *Egress) answerOf(fd int, port uint16) error {
	if err := relay.AnswerOf(fd); err != nil || port < e.given {
		return err
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	other, err := unix.Getpeername(fd)
	if err == nil && addrPort(own) == addrPort(other) {
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

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// fail tells the pod why there is no connection.
func (e *Egress) fail(first packet, err error) {
	if answer := e.excuse(first, err); answer != nil {
		e.inject(answer)
	}
}

// excuse is what a pod is told of a connection that failed: what it would have heard had
// it tried itself. Of one that nobody has answered it hears nothing.
func (e *Egress) excuse(first packet, err error) []byte {
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET):
		return refuse(first)
	case errors.Is(err, unix.EHOSTUNREACH):
		return unreach(first, e.gateway(first), noHost)
	case errors.Is(err, unix.ETIMEDOUT):
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return unreach(first, e.gateway(first), forbidden)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EADDRNOTAVAIL):
		return nil // it will be sent again
	}
	return unreach(first, e.gateway(first), noRoute)
}

// forget ends a connection.
func (e *Egress) forget(f flow, c *connection) {
	if e.tcp.all[f] == c {
		delete(e.tcp.all, f)
	}
	e.end()
}

// drop ends one that has not been joined.
func (e *Egress) drop(f flow, c *connection) {
	e.loop.Forget(c.far, true)
	unix.Close(c.far)
	e.forget(f, c)
}

// lookAfter looks after connections that are not joined, and says whether there are any.
func (e *Egress) lookAfter() bool { return e.giveUp(time.Now()) }

// giveUp ends those that have not been joined in time.
func (e *Egress) giveUp(now time.Time) (waiting bool) {
	e.tcp.starved = slices.DeleteFunc(e.tcp.starved, func(fd int) bool { return e.listen(fd) == nil })
	waiting = len(e.tcp.starved) > 0
	for f, c := range e.tcp.all {
		switch {
		case c.state == joined:
		case now.After(c.until):
			e.drop(f, c)
		default:
			waiting = true
		}
	}
	e.tcp.waiting = waiting
	return waiting
}

// listen has connections to a socket accepted.
func (e *Egress) listen(fd int) error {
	return e.loop.Watch(fd, relay.Readable, func(uint32) {
		e.reading.RLock()
		defer e.reading.RUnlock()
		e.accept(fd)
	})
}

// accept takes the pod's side of a connection.
func (e *Egress) accept(listener int) {
	near, from, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch err {
	case nil:
		e.join(near, from)
	case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
	default: // there is no descriptor until others end
		e.loop.Forget(listener, false)
		e.tcp.starved = append(e.tcp.starved, listener)
		if !e.tcp.waiting {
			e.tcp.waiting = true
			e.loop.Tick(e.lookAfter)
		}
	}
}

// join joins the pod's side to the other one.
func (e *Egress) join(near int, from unix.Sockaddr) {
	to, err := unix.Getsockname(near)
	if err == nil {
		err = unix.SetsockoptInt(near, unix.SOL_TCP, unix.TCP_NODELAY, 1)
	}
	if err != nil {
		relay.ResetFD(near)
		return
	}
	f := flow{addrPort(from), addrPort(to)}
	if e.asksNames(f.dst) {
		e.nameConnection(near)
		return
	}
	c := e.tcp.all[f]
	if c == nil || c.state != accepting {
		relay.ResetFD(near) // of a connection whose far side has ended with a supervisor
		return
	}
	c.state = joined
	e.loop.Carry(near, c.far, func() { e.forget(f, c) })
}

// close ends all connections. The loop has ended.
func (c *connections) close() {
	for _, x := range c.all {
		if x.state != joined {
			relay.ResetFD(x.far)
		}
	}
	c.mu.Lock()
	c.closed = true
	for conn := range c.names {
		conn.Close()
	}
	c.mu.Unlock()
	c.over.Wait()
}
