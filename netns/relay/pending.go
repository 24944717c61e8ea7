package relay

import (
	"errors"
	"io"
	"time"
)

// ProxyPending is Proxy once b, which is connecting, is connected. If b is refused, or not answered
// in time, or a is reset meanwhile, both are reset. end resets both, at any time.
func (l *Loop) ProxyPending(a, b int, timeout time.Duration, over func()) (end func()) {
	j := l.newConn(a, b, over)
	j.sides[1].watchesWrites = true
	if !j.forwardEarly() || !j.watch() || j.connected {
		return j.reset
	}
	l.connecting[j] = time.Now().Add(timeout)
	if !l.expiring {
		l.expiring = true
		l.AddTicker(l.expire)
	}
	return j.reset
}

// forwardEarly forwards what a has sent already, which is half of the traffic of many connections.
// A peer on this host has answered by now. False: it has failed.
func (j *proxyConn) forwardEarly() bool {
	w := &j.pumps[0]
	w.src.readable = true
	_, err := j.loop.pump(w)
	j.connected = w.wrote
	if err != nil && !errors.Is(err, io.EOF) { // the end is reported again
		j.reset()
		return false
	}
	return true
}

// expire resets connections whose deadline has passed, and reports whether there are others.
func (l *Loop) expire() bool {
	now := time.Now()
	for j, until := range l.connecting {
		if now.After(until) {
			j.reset()
		}
	}
	l.expiring = len(l.connecting) > 0
	return l.expiring
}
