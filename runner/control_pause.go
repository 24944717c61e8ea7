package runner

import (
	"bufio"
	"net"
	"os"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
)

// pauseTimeout is the time limit for pausing a pod, including containers that are just being started.
const pauseTimeout = 2 * freezeTimeout

// cannotPause returns the reason why the pod cannot be paused, or nil.
func (e *engine) cannotPause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.sandbox == nil:
		return &wire.Error{Message: "it is being created or removed", Code: 1, Hint: "podrun ps shows its state"}
	case e.sandbox.Cgroup == nil:
		return &wire.Error{Message: "it has no cgroup of its own to freeze", Code: 1,
			Hint: "podrun doctor shows how to get cgroups on this machine; podrun stop ends the pod and keeps its data"}
	}
	return nil
}

// pauseOrUnpause pauses or unpauses the pod for a client and answers when that is done.
func (c *control) pauseOrUnpause(conn *net.UnixConn, req *wire.PauseRequest, _ []*os.File) error {
	kind := lifecycle.UnpauseRequested
	if req.Paused {
		kind = lifecycle.PauseRequested
		if err := c.engine.cannotPause(); err != nil {
			return err
		}
	}
	c.engine.emit(lifecycle.Event{Kind: kind})
	if c.awaitStatus(conn, func(st *pod.Status) bool { return (st.Reason == pod.ReasonPaused) == req.Paused }) {
		return wire.WriteFrame(conn, wire.Frame{Applied: true})
	}
	if req.Paused {
		c.engine.emit(lifecycle.Event{Kind: lifecycle.UnpauseRequested})
	}
	return &wire.Error{Message: "its processes did not freeze or thaw in time", Code: 1, Hint: "podrun ps and podrun events show what it does"}
}

// awaitStatus waits until the status satisfies wanted and reports whether it does. It gives up after
// pauseTimeout, when the client disconnects and when the pod ends.
func (c *control) awaitStatus(conn *net.UnixConn, wanted func(*pod.Status) bool) bool {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		bufio.NewReader(conn).ReadByte()
	}()
	limit := time.NewTimer(pauseTimeout)
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

// refusePaused returns an error while the pod is paused: nothing can be started in it. A supervisor that
// has just started has no status yet and refuses nothing.
func (c *control) refusePaused() error {
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
	name := c.engine.currentPlan().Name
	return &wire.Error{Message: "pod " + name + " is paused", Code: 125, Hint: "podrun unpause " + name}
}
