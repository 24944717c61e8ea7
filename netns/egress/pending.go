package egress

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// acceptedConn is a connection whose pod's side was accepted before the far side was connected,
// because the same address has just answered (netns/router: answered.go), or because a process has
// died in between.
type acceptedConn struct {
	flow     flow
	fd       int       // descriptor
	deadline time.Time // when to give up
}

// maxPending limits the waiting connections, which count as flows even beyond the limit of flows.
const maxPending = reserve / 8

// connectAccepted connects an accepted connection to the far side and joins both, or resets it if
// that fails. If there are too many flows, the connection waits in pending; if too many wait, the connection
// that has waited longest is reset.
func (e *Proxy) connectAccepted(t acceptedConn) {
	e.supersede(t.flow)
	err := e.connectFor(t)
	if err == nil {
		return
	}
	if !isExhausted(err) || time.Now().After(t.deadline) {
		relay.ResetFD(t.fd)
		return
	}
	if len(e.tcp.pending) >= maxPending {
		relay.ResetFD(e.tcp.pending[0].fd)
		e.tcp.pending = e.tcp.pending[1:]
		e.releaseFlow()
	}
	e.flows.Add(1) // may exceed the limit
	e.tcp.pending = append(e.tcp.pending, t)
	e.startTicking()
}

// connectFor starts to connect to the far side.
func (e *Proxy) connectFor(t acceptedConn) error {
	to, ok := e.hostTarget("TCP", t.flow.dst)
	if !ok {
		return unix.ENETUNREACH
	}
	if !e.acquireFlow() {
		return unix.EMFILE
	}
	far, err := e.dialHost(to)
	if err != nil {
		e.releaseFlow()
		return err
	}
	c := &tcpConn{host: far, state: joined, deadline: time.Now().Add(keepaliveDelay)}
	e.tcp.all[t.flow] = c // may replace one that has just ended
	c.end = e.loop.ProxyPending(t.fd, far, connectTimeout, func() { e.forget(t.flow, c) })
	e.startTicking()
	return nil
}

// retryPending retries the waiting connections that the pod has not reset. None of them blocks
// another.
func (e *Proxy) retryPending() {
	if len(e.tcp.pending) == 0 {
		return
	}
	e.reading.RLock()
	defer e.reading.RUnlock()
	all := e.tcp.pending
	e.tcp.pending = nil
	e.flows.Add(-int64(len(all)))
	for _, t := range all {
		if isReset(t.fd) {
			relay.ResetFD(t.fd)
		} else {
			e.connectAccepted(t)
		}
	}
}

// isReset reports whether the other end of a connection has reset it.
func isReset(fd int) bool {
	polled := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0 && polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// isExhausted reports whether an error is temporary, until other connections end.
func isExhausted(err error) bool {
	for _, passing := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EADDRNOTAVAIL} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
