package relay

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// Proxy forwards data between two connections until both have ended, closes both, and calls over. A
// reset of one side resets the other, and so does the end of the loop. Both sockets must not block.
// On the loop's thread only. b may have been watched for Edges; events are those that were reported
// for it. Its handler gets no more events. end resets both, at any time.
func (l *Loop) Proxy(a, b int, events uint32, over func()) (end func()) {
	j := l.newConn(a, b, over)
	j.connected = true
	j.sides[1].watchesWrites = events != 0
	if j.watch() {
		j.sides[1].handle(events)
		j.run()
	}
	return j.reset
}

// IsConnectDone reports whether an attempt to connect has finished; ConnectError returns its
// result.
func IsConnectDone(events uint32) bool { return events&(unix.EPOLLOUT|failure) != 0 }

// failure are the events of every attempt that has failed.
const failure = unix.EPOLLERR | unix.EPOLLHUP

// ConnectError returns the error of an attempt to connect for which these events were reported.
func ConnectError(fd int, events uint32) error {
	if events&failure == 0 {
		return nil
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	return err
}

func (l *Loop) newConn(a, b int, over func()) *proxyConn {
	j := &proxyConn{loop: l, done: over}
	j.sides = [2]side{{fd: a, writable: true}, {fd: b, writable: true}}
	j.pumps = [2]pump{{src: &j.sides[0], dst: &j.sides[1]}, {src: &j.sides[1], dst: &j.sides[0]}}
	l.conns[j] = true
	return j
}

// watch watches both ends; if it fails, the connection is reset.
func (j *proxyConn) watch() bool {
	for i := range j.sides {
		e := &j.sides[i]
		events := uint32(readEdges)
		if e.watchesWrites {
			events = ReadWriteEdges
		}
		if j.loop.setHandler(e.fd, events, func(events uint32) { j.handle(e, events) }) != nil {
			j.reset()
			return false
		}
	}
	return true
}

// proxyConn is two connections joined to one.
type proxyConn struct {
	loop      *Loop
	sides     [2]side
	pumps     [2]pump
	done      func()
	queued    bool // it waits for another turn
	connected bool
	closed    bool
}

// side is one connection.
type side struct {
	fd            int
	readable      bool // there may be something to read
	untilEmpty    bool // data has to be read until there is none: no other event will report it
	writable      bool // it accepts data, by the latest event
	watchesWrites bool // the loop reports when that changes, which is requested only when needed
	failed        bool // reads may not report it after an end
	halfClosed    bool // nothing follows the pending data
	urgent        bool // urgent data ends a read too early
	empty         bool // it has been read to its end
}

// pump is one direction of a proxyConn.
type pump struct {
	src, dst      *side
	pending       []byte // read but not yet written
	bulk          bool   // it is a stream: data goes through pipe
	pipe          *pipe  // nil, or where piped bytes are
	piped         int
	wrote         bool // something
	noDelay       bool // small writes are not delayed (TCP_NODELAY)
	done          bool
	windowClamped bool // clampWindow was called for src
}

// handle handles the events of one side.
func (j *proxyConn) handle(e *side, events uint32) {
	if j.closed {
		return
	}
	e.handle(events)
	if !j.connected {
		switch {
		case e.failed:
			j.reset()
			return
		case e != &j.sides[1] || !IsConnectDone(events):
			return
		}
		j.connected = true
		delete(j.loop.connecting, j)
	}
	if !j.queued { // otherwise its turn comes next
		j.run()
	}
}

func (e *side) handle(events uint32) {
	const last = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	if events&(unix.EPOLLIN|unix.EPOLLPRI|last) != 0 {
		e.readable = true
		e.untilEmpty = e.untilEmpty || events&(last|unix.EPOLLPRI) != 0
	}
	if events&(unix.EPOLLOUT|last) != 0 {
		e.writable = true
	}
	e.halfClosed = e.halfClosed || events&unix.EPOLLRDHUP != 0
	e.urgent = e.urgent || events&unix.EPOLLPRI != 0
	e.failed = e.failed || events&unix.EPOLLERR != 0
}

// run does what is possible without blocking, for one turn of this connection.
func (j *proxyConn) run() {
	if j.closed {
		return
	}
	for i := range j.pumps {
		w := &j.pumps[i]
		if w.done && w.src.failed {
			j.reset()
			return
		}
		if w.done {
			continue
		}
		more, err := j.loop.pump(w)
		switch {
		case errors.Is(err, io.EOF):
			w.done = true
			if other := &j.pumps[1-i]; w.src.failed || !other.done && rawsys.Shutdown(w.dst.fd, unix.SHUT_WR) != nil {
				j.reset()
				return
			}
		case err != nil:
			j.reset()
			return
		case more && !j.queued:
			j.queued = true
			j.loop.runnable = append(j.loop.runnable, j)
		}
	}
	if j.pumps[0].done && j.pumps[1].done {
		j.close(rawsys.Close)
	}
}

// reset resets both ends.
func (j *proxyConn) reset() { j.close(ResetFD) }

func (j *proxyConn) close(how func(fd int)) {
	if j.closed {
		return
	}
	j.closed = true
	for i := range j.pumps {
		j.loop.returnPipe(&j.pumps[i])
	}
	for _, e := range j.sides {
		j.loop.Unwatch(e.fd, true)
		how(e.fd)
	}
	delete(j.loop.connecting, j)
	if delete(j.loop.conns, j); len(j.loop.conns) == 0 {
		j.loop.closeIdlePipes()
	}
	j.done()
}
