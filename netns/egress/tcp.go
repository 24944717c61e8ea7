package egress

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/netns/relay"
)

// connections are those of the pod, from the first packet until both ends have ended: a
// packet that is sent again is never taken for a new connection.
type connections struct {
	// The loop's.
	all     map[flow]*connection
	waiting bool    // the loop looks after those that are not joined yet
	starved []int   // listening sockets that wait for descriptors
	late    []taken // those whose far side waits for room, the oldest first

	mu     sync.Mutex
	closed bool
	names  map[*net.TCPConn]bool // with the resolver
	over   sync.WaitGroup
}

// connection is one of the pod's.
type connection struct {
	number uint32 // that its first packet begins with
	far    int    // descriptor of the socket in the host's network
	told   uint32 // events of far until it is joined
	state  state
	until  time.Time // when to give up what has not been joined, or to make sure of what has
	sure   bool      // a partner that is silently gone is found out
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
	// briefTime is how long most connections last, of which nothing has to be found out.
	briefTime = time.Second
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
	e.supersede(f)
	to, ok := e.target(f.dst)
	if !ok {
		e.inject(unreach(p, e.gateway(p), noRoute))
		return
	}
	if !e.begin() {
		return // it will be sent again
	}
	fd, err := e.farSide(to)
	if err != nil {
		e.end()
		e.fail(p, err)
		return
	}
	c := &connection{number: p.sequence(), far: fd, until: time.Now().Add(connectTime)}
	e.tcp.all[f] = c // in the place of one that has just ended, perhaps
	first := p.clone()
	err = e.loop.Watch(fd, relay.Edges, func(events uint32) {
		if c.told |= events; c.state == connecting && relay.Answered(events) {
			e.connected(f, c, first)
		}
	})
	if err != nil {
		e.drop(f, c)
		return
	}
	e.wait()
}

// supersede is told that there is another connection between two addresses.
func (e *Egress) supersede(f flow) {
	switch old := e.tcp.all[f]; {
	case old == nil:
	case old.state == joined:
		old.makeSure() // nobody else knows of it
	default:
		e.drop(f, old) // which the pod has given up
	}
}

// wait has connections looked after.
func (e *Egress) wait() {
	if !e.tcp.waiting {
		e.tcp.waiting = true
		e.loop.Tick(e.lookAfter)
	}
}

// connected is told that the far side has answered, or has not; only if it has the pod has a
// partner.
func (e *Egress) connected(f flow, c *connection, first packet) {
	if err := relay.AnswerOf(c.far, c.told); err != nil {
		e.drop(f, c)
		e.fail(first, err)
		return
	}
	c.state, c.until = accepting, time.Now().Add(acceptTime)
	e.inject(first.raw)
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
	case exhausted(err):
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
	brief.Close(c.far)
	e.forget(f, c)
}

// lookAfter looks after connections that are not joined, and says whether there are any.
func (e *Egress) lookAfter() bool { return e.giveUp(time.Now()) }

// giveUp ends those that have not been joined in time.
func (e *Egress) giveUp(now time.Time) (waiting bool) {
	e.tcp.starved = slices.DeleteFunc(e.tcp.starved, func(fd int) bool { return e.listen(fd) == nil })
	e.meetLate()
	waiting = len(e.tcp.starved)+len(e.tcp.late) > 0
	for f, c := range e.tcp.all {
		switch {
		case c.state == joined && c.sure:
		case c.state == joined && now.After(c.until):
			c.makeSure()
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
	near, from, err := relay.Accept(listener)
	switch err {
	case nil:
		e.join(near, from)
	case unix.EAGAIN, unix.EINTR, unix.ECONNABORTED:
	default: // there is no descriptor until others end
		e.loop.Forget(listener, false)
		e.tcp.starved = append(e.tcp.starved, listener)
		e.wait()
	}
}

// join joins the pod's side to the other one.
func (e *Egress) join(near int, from netip.AddrPort) {
	to, err := relay.NameOf(near)
	if err != nil {
		relay.ResetFD(near)
		return
	}
	f := flow{from, to}
	if e.asksNames(f.dst) {
		e.nameConnection(near)
		return
	}
	c := e.tcp.all[f]
	if c == nil || c.state != accepting {
		e.meet(taken{f, near, time.Now().Add(acceptTime)})
		return
	}
	c.state, c.until = joined, time.Now().Add(briefTime)
	e.loop.Carry(near, c.far, c.told, func() { e.forget(f, c) })
	e.wait()
}

// close ends all connections. The loop has ended.
func (c *connections) close() {
	for _, x := range c.all {
		if x.state != joined {
			relay.ResetFD(x.far)
		}
	}
	for _, t := range c.late {
		relay.ResetFD(t.near)
	}
	c.mu.Lock()
	c.closed = true
	for conn := range c.names {
		conn.Close()
	}
	c.mu.Unlock()
	c.over.Wait()
}
