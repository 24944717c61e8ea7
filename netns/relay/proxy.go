package relay

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// Proxy passes on what two connections say until both have ended, closes both, and has
// over called. A reset of one side resets the other, and so does the end of the loop. Both
// must not block. On the loop's thread only. b may have been watched for Edges, and told is
// what has been told of it; its watcher is told no more.
func (l *Loop) Proxy(a, b int, events uint32, over func()) {
	j := l.newConn(a, b, over)
	j.connected = true
	j.sides[1].watchesWrites = events != 0
	if j.watch() {
		j.sides[1].handle(events)
		j.run()
	}
}

// IsConnectDone says whether an attempt to connect has come to its end, and ConnectError which.
func IsConnectDone(events uint32) bool { return events&(unix.EPOLLOUT|failure) != 0 }

// failure is told of every attempt that has failed.
const failure = unix.EPOLLERR | unix.EPOLLHUP

// ConnectError is what has become of an attempt to connect of which these events were told.
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

// watch has both ends heard; else the joint is broken.
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

// proxyConn is two connections as one.
type proxyConn struct {
	loop      *Loop
	sides     [2]side
	pumps     [2]pump
	done      func()
	queued    bool // in the loop's again
	connected bool
	closed    bool
}

// side is one connection.
type side struct {
	fd            int
	readable      bool // there may be something to read
	untilEmpty    bool // what there is has to be read until nothing comes: no other event will tell
	writable      bool // it takes what is written, as far as known
	watchesWrites bool // the loop tells when that changes, which is not asked for before it has to be
	failed        bool // reading may say nothing of it, after an end
	halfClosed    bool // nothing follows what there is
	urgent        bool // something in between ends a read too early
	empty         bool // it has been read to its end
}

// pump is half a joint.
type pump struct {
	src, dst      *side
	pending       []byte // that has been read and not been written
	bulk          bool   // it is a stream: what comes goes through pipe
	pipe          *pipe  // nil, or where piped bytes are
	piped         int
	wrote         bool // something
	noDelay       bool // what is written does not wait for more (TCP_NODELAY)
	done          bool
	windowClamped bool // its sender
}

// handle is told of one end.
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
	if !j.queued { // else it has its turn next
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

// run does what can be done without waiting, for as long as it is this joint's turn.
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
