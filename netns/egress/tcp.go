package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// connections are those of the pod, from the first packet until both ends have ended: a
// packet that is sent again is never taken for a new connection.
type connections struct {
	listeners []*net.TCPListener

	mu     sync.Mutex
	closed bool
	all    map[flow]*connection
	names  map[*net.TCPConn]bool // with the resolver
	over   sync.WaitGroup
}

// connection is one of the pod's.
type connection struct {
	number uint32             // that its first packet begins with
	stop   context.CancelFunc // ends the attempt to connect
	far    *net.TCPConn       // in the host's network; nil until it is connected
	near   *net.TCPConn       // to the pod; nil until it is accepted
	timer  *time.Timer        // ends it if it is never accepted
}

const (
	// connecting is longer than the kernel's own patience (tcp_syn_retries), which is
	// the pod's too.
	connecting = 3 * time.Minute
	// accepting is how long the pod may take for its part of the handshake.
	accepting = 30 * time.Second
)

// farSide is the host's part of a connection. A partner that is silently gone is found out.
var farSide = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Minute, Interval: 30 * time.Second, Count: 6}}

// open answers the first packet of a connection.
func (e *Egress) open(f flow, p packet) {
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	if c := e.tcp.all[f]; c != nil && c.number == p.sequence() {
		if c.far != nil && c.near == nil {
			e.inject(p.raw) // it got lost on the way back
		}
		return
	}
	to, ok := e.target(f.dst)
	if !ok {
		e.inject(unreach(p, e.gateway(p), noRoute))
		return
	}
	if e.tcp.closed || !e.begin() {
		return // it will be sent again
	}
	ctx, stop := context.WithTimeout(context.Background(), connecting)
	c := &connection{number: p.sequence(), stop: stop}
	e.tcp.all[f] = c // in the place of one that has just ended, perhaps
	first := p.clone()
	e.tcp.over.Go(func() { e.connect(ctx, f, c, to, first) })
}

// connect reaches the far side; only then has the pod a partner.
func (e *Egress) connect(ctx context.Context, f flow, c *connection, to netip.AddrPort, first packet) {
	defer c.stop()
	conn, err := farSide.DialContext(ctx, "tcp", to.String())
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	if err != nil || e.tcp.closed {
		e.forget(f, c)
		if err == nil {
			conn.Close()
		} else if answer := e.excuse(first, err); answer != nil {
			e.inject(answer)
		}
		return
	}
	c.far = conn.(*net.TCPConn)
	c.timer = time.AfterFunc(accepting, func() { e.giveUp(f, c) })
	e.inject(first.raw)
}

// excuse is what a pod is told of a connection that failed: what it would have heard had
// it tried itself. Of one that nobody has answered it hears nothing.
func (e *Egress) excuse(first packet, err error) []byte {
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET):
		return refuse(first)
	case errors.Is(err, unix.EHOSTUNREACH):
		return unreach(first, e.gateway(first), noHost)
	case errors.Is(err, unix.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return unreach(first, e.gateway(first), forbidden)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EADDRNOTAVAIL):
		return nil // it will be sent again
	}
	return unreach(first, e.gateway(first), noRoute)
}

// forget ends a connection. The caller holds mu.
func (e *Egress) forget(f flow, c *connection) {
	if e.tcp.all[f] == c {
		delete(e.tcp.all, f)
	}
	e.end()
}

func (e *Egress) giveUp(f flow, c *connection) {
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	if c.near == nil && !e.tcp.closed {
		c.far.Close()
		e.forget(f, c)
	}
}

// accept takes the pod's side of connections.
func (e *Egress) accept(l *net.TCPListener) {
	for {
		near, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: others end
			continue
		}
		e.join(near)
	}
}

// join joins the pod's side to the other one.
func (e *Egress) join(near *net.TCPConn) {
	near.SetKeepAlive(false) // the pod cannot go without a word: its kernel is this one
	f := flow{unmapped(near.RemoteAddr()), unmapped(near.LocalAddr())}
	if e.asksNames(f.dst) {
		e.nameConnection(near)
		return
	}
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	c := e.tcp.all[f]
	if c == nil || c.far == nil || c.near != nil || e.tcp.closed {
		relay.Reset(near) // of a connection whose far side has ended with a supervisor
		return
	}
	c.near = near
	c.timer.Stop()
	e.tcp.over.Go(func() {
		relay.Join(near, c.far)
		e.tcp.mu.Lock()
		defer e.tcp.mu.Unlock()
		e.forget(f, c)
	})
}

func unmapped(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// close ends all connections.
func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	for _, x := range c.all {
		x.stop()
		for _, conn := range []*net.TCPConn{x.near, x.far} {
			if conn != nil {
				relay.Reset(conn)
			}
		}
		if x.timer != nil {
			x.timer.Stop()
		}
	}
	for conn := range c.names {
		conn.Close()
	}
	c.mu.Unlock()
	c.over.Wait()
}
