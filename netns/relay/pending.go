package relay

import (
	"errors"
	"io"
	"time"
)

// ProxyPending is Carry once b, which is connecting, is connected. If it is refused, or not answered
// in time, or a is reset meanwhile, both are reset. end resets both, at any time.
func (l *Loop) ProxyPending(a, b int, patience time.Duration, over func()) (end func()) {
	j := l.newConn(a, b, over)
	j.sides[1].watchesWrites = true
	if !j.forwardEarly() || !j.watch() || j.connected {
		return j.reset
	}
	l.connecting[j] = time.Now().Add(patience)
	if !l.expiring {
		l.expiring = true
		l.AddTicker(l.expire)
	}
	return j.reset
}

// forwardEarly passes on at once what a has said, which is half of what many connections are for. Who is on
// this machine has answered by now. False: it has failed.
func (j *proxyConn) forwardEarly() bool {
	w := &j.pumps[0]
	w.src.readable = true
	_, err := j.loop.pump(w)
	j.connected = w.wrote
	if err != nil && !errors.Is(err, io.EOF) { // of its end it is told again
		j.reset()
		return false
	}
	return true
}

// expire resets those whose patience has come to an end, and says whether there are others.
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
