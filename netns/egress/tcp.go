package egress

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// tcpConns are the pod's connections, from the first packet until both ends have ended: a
// retransmission is never taken for a new connection.
type tcpConns struct {
	// For the loop's thread.
	all     map[flow]*tcpConn
	ticking bool           // the loop checks connections that are not joined yet
	starved []int          // listening sockets that wait for descriptors
	pending []acceptedConn // those whose far side waits for room, the oldest first

	mu       sync.Mutex
	closed   bool
	dnsConns map[*net.TCPConn]bool // those that the resolver serves
	running  sync.WaitGroup
}

// tcpConn is one connection of the pod.
type tcpConn struct {
	sequence  uint32 // initial sequence number
	host      int    // descriptor of the socket in the host's network
	events    uint32 // events of host until it is joined
	state     connState
	deadline  time.Time // when to give up what has not been joined, or to enable keepalive
	keepalive bool      // it is enabled
	end       func()    // resets both sides of a joined connection
}

// connState is the state of a connection.
type connState byte

const (
	connecting connState = iota // to the far side
	accepting                   // the pod's part of the handshake
	joined
)

const (
	// connectTimeout exceeds the kernel's own timeout (tcp_syn_retries), which is also the pod's.
	connectTimeout = 3 * time.Minute
	// acceptTimeout is how long the pod may take for its part of the handshake.
	acceptTimeout = 30 * time.Second
	// keepaliveDelay is the age at which a joined connection gets keepalive: most connections have ended by
	// then.
	keepaliveDelay = time.Second
)

// handleSYN handles the first packet of a connection.
func (e *Proxy) handleSYN(f flow, p packet) {
	old := e.tcp.all[f]
	if old != nil && old.sequence == p.sequence() {
		if old.state == accepting {
			e.inject(p.raw) // the pod has not received the answer to it
		}
		return
	}
	e.supersede(f)
	to, ok := e.hostTarget("TCP", f.dst)
	if !ok {
		e.inject(icmpUnreachable(p, e.gateway(p), noRoute))
		return
	}
	if !e.acquireFlow() {
		return // the pod retransmits it
	}
	fd, err := e.dialHost(to)
	if err != nil {
		e.releaseFlow()
		e.reject(p, err)
		return
	}
	c := &tcpConn{sequence: p.sequence(), host: fd, deadline: time.Now().Add(connectTimeout)}
	e.tcp.all[f] = c // may replace one that has just ended
	first := p.clone()
	err = e.loop.Watch(fd, relay.ReadWriteEdges, func(events uint32) {
		if c.events |= events; c.state == connecting && relay.IsConnectDone(events) {
			e.connected(f, c, first)
		}
	})
	if err != nil {
		e.abort(f, c)
		return
	}
	e.startTicking()
}

// supersede handles a new connection between the addresses of an existing one.
func (e *Proxy) supersede(f flow) {
	switch old := e.tcp.all[f]; {
	case old == nil:
	case old.state == joined:
		old.enableKeepalive() // this proxy no longer tracks it
	default:
		e.abort(f, old) // the pod has given it up
	}
}

// startTicking starts the periodic check of connections.
func (e *Proxy) startTicking() {
	if !e.tcp.ticking {
		e.tcp.ticking = true
		e.loop.AddTicker(e.tick)
	}
}

// connected handles the result of connecting to the far side. Only after success is the pod's SYN passed
// on to the listening socket: the pod's connect succeeds only if the host's did.
func (e *Proxy) connected(f flow, c *tcpConn, first packet) {
	if err := relay.ConnectError(c.host, c.events); err != nil {
		e.abort(f, c)
		e.reject(first, err)
		return
	}
	c.state, c.deadline = accepting, time.Now().Add(acceptTimeout)
	e.inject(first.raw)
}

// reject reports to the pod why there is no connection.
func (e *Proxy) reject(first packet, err error) {
	if answer := e.errorReply(first, err); answer != nil {
		e.inject(answer)
	}
}

// errorReply returns the packet that reports a failed connection to the pod: the packet that it would
// have got without a proxy. For a timeout there is none.
func (e *Proxy) errorReply(first packet, err error) []byte {
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET):
		return tcpReset(first)
	case errors.Is(err, unix.EHOSTUNREACH):
		return icmpUnreachable(first, e.gateway(first), noHost)
	case errors.Is(err, unix.ETIMEDOUT):
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return icmpUnreachable(first, e.gateway(first), forbidden)
	case isExhausted(err):
		return nil // the pod retransmits it
	}
	return icmpUnreachable(first, e.gateway(first), noRoute)
}

// forget removes a connection.
func (e *Proxy) forget(f flow, c *tcpConn) {
	if e.tcp.all[f] == c {
		delete(e.tcp.all, f)
	}
	e.releaseFlow()
}

// abort ends a connection that has not been joined.
func (e *Proxy) abort(f flow, c *tcpConn) {
	e.loop.Unwatch(c.host, true)
	rawsys.Close(c.host)
	e.forget(f, c)
}

// tick is expire for the present time.
func (e *Proxy) tick() bool { return e.expire(time.Now()) }

// expire is the periodic work of connections: it retries listeners and connections that lacked descriptors,
// enables keepalive for joined connections, and ends connections that have not been joined in time. It
// reports whether any of these are left to check.
func (e *Proxy) expire(now time.Time) (waiting bool) {
	e.tcp.starved = slices.DeleteFunc(e.tcp.starved, func(fd int) bool { return e.listen(fd) == nil })
	e.retryPending()
	waiting = len(e.tcp.starved)+len(e.tcp.pending) > 0
	for f, c := range e.tcp.all {
		switch {
		case c.state == joined && c.keepalive:
		case c.state == joined && now.After(c.deadline):
			c.enableKeepalive()
		case now.After(c.deadline):
			e.abort(f, c)
		default:
			waiting = true
		}
	}
	e.tcp.ticking = waiting
	return waiting
}

// listen accepts connections to a socket.
func (e *Proxy) listen(fd int) error {
	return e.loop.Watch(fd, relay.Readable, func(uint32) {
		e.reading.RLock()
		defer e.reading.RUnlock()
		e.accept(fd)
	})
}

// accept accepts the pod's side of a connection.
func (e *Proxy) accept(listener int) {
	near, from, err := relay.Accept(listener)
	switch err {
	case nil:
		e.proxyAccepted(near, from)
	case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
	default: // out of descriptors until other connections end
		e.loop.Unwatch(listener, false)
		e.tcp.starved = append(e.tcp.starved, listener)
		e.startTicking()
	}
}

// proxyAccepted joins the pod's side to the far side.
func (e *Proxy) proxyAccepted(near int, from netip.AddrPort) {
	to, err := relay.LocalAddr(near)
	if err != nil {
		relay.ResetFD(near)
		return
	}
	f := flow{from, to}
	if e.isDNS(f.dst) {
		e.serveDNSConn(near)
		return
	}
	c := e.tcp.all[f]
	if c == nil || c.state != accepting {
		e.connectAccepted(acceptedConn{f, near, time.Now().Add(acceptTimeout)})
		return
	}
	c.state, c.deadline = joined, time.Now().Add(keepaliveDelay)
	c.end = e.loop.Proxy(near, c.host, c.events, func() { e.forget(f, c) })
	e.startTicking()
}

// Cut ends the pod's connections to destinations that are not allowed. The router's rules drop their packets;
// Cut notifies the remote hosts.
func (e *Proxy) Cut(allowed func(to netip.AddrPort) bool) {
	_ = e.loop.Do(func() error { // a loop that has ended has no connections
		for f, c := range e.tcp.all {
			if c.state == joined && c.end != nil && !allowed(f.dst) {
				c.end()
			}
		}
		return nil
	})
}

// close ends all connections. The loop has ended before.
func (c *tcpConns) close() {
	for _, x := range c.all {
		if x.state != joined {
			relay.ResetFD(x.host)
		}
	}
	for _, t := range c.pending {
		relay.ResetFD(t.fd)
	}
	c.mu.Lock()
	c.closed = true
	for conn := range c.dnsConns {
		conn.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}
