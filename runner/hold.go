package runner

import (
	"bufio"
	"net"
	"time"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// holdTime is how long a pod may take to pause, with what is being started meanwhile.
const holdTime = 2 * freezeTime

// unfreezable says why a pod cannot be paused, or nothing.
func (e *engine) unfreezable() *wire.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.sandbox == nil:
		return &wire.Error{Message: "it is still being made, or ends", Code: 1, Hint: "podrun ps shows its state"}
	case e.sandbox.cgroup == nil:
		return &wire.Error{Message: "it has no cgroup of its own, by which its processes could be held", Code: 1,
			Hint: "podrun doctor says how this machine lets pods have some; podrun stop ends the pod and keeps what it leaves"}
	}
	return nil
}

// hold pauses the pod for a client, or lets it go on, and answers when that is so.
func (c *control) hold(conn *net.UnixConn, req *wire.PauseRequest) error {
	kind := lifecycle.ResumeWanted
	if req.Paused {
		kind = lifecycle.PauseWanted
		if err := c.engine.unfreezable(); err != nil {
			return wire.WriteFrame(conn, wire.Frame{Error: err})
		}
	}
	c.engine.emit(lifecycle.Event{Kind: kind})
	if c.await(conn, func(st *pod.Status) bool { return (st.Reason == pod.ReasonPaused) == req.Paused }) {
		return wire.WriteFrame(conn, wire.Frame{Applied: true})
	}
	if req.Paused {
		c.engine.emit(lifecycle.Event{Kind: lifecycle.ResumeWanted})
	}
	return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{
		Message: "its processes do not follow in time", Code: 1, Hint: "podrun ps and podrun events show what it does",
	}})
}

// await waits until the status is as it is wanted: not for ever, and not for a client that
// has gone, or a pod that has ended.
func (c *control) await(conn *net.UnixConn, wanted func(*pod.Status) bool) bool {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		bufio.NewReader(conn).ReadByte()
	}()
	limit := time.NewTimer(holdTime)
	defer limit.Stop()
	for {
		c.mu.Lock()
		st, changed := c.status, c.changed
		c.mu.Unlock()
		if st != nil && wanted(st) {
			return true
		}
		select {
		case <-changed:
		case <-gone:
			return false
		case <-c.ended:
			return false
		case <-limit.C:
			return false
		}
	}
}

// held refuses what would begin in a pod that is paused. A supervisor that has only just
// begun has said nothing yet.
func (c *control) held() *wire.Error {
	for {
		c.mu.Lock()
		st, changed := c.status, c.changed
		c.mu.Unlock()
		if st != nil {
			if st.Reason != pod.ReasonPaused {
				return nil
			}
			break
		}
		select {
		case <-changed:
		case <-c.ended:
			return nil
		}
	}
	name := c.engine.current().Name
	return &wire.Error{Message: "pod " + name + " is paused", Code: 125, Hint: "podrun unpause " + name}
}
