package runner

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
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

// pauseOrResume pauses or resumes the pod for a client and answers when that is done.
func (c *control) pauseOrResume(conn *net.UnixConn, req *wire.PauseRequest, _ []*os.File) error {
	kind := lifecycle.ResumeRequested
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
		c.engine.emit(lifecycle.Event{Kind: lifecycle.ResumeRequested})
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

// kill sends a signal to the processes of the named containers, or of all running ones.
func (c *control) kill(conn *net.UnixConn, req *wire.KillRequest, _ []*os.File) error {
	refuse := func(message, hint string, code int) error {
		return &wire.Error{Message: message, Hint: hint, Code: code}
	}
	if req.Signal < 1 || req.Signal > container.MaxSignal {
		return refuse(fmt.Sprintf("%d is not a signal", req.Signal), "", 2)
	}
	names := req.Containers
	if len(names) == 0 {
		names = c.engine.running()
	}
	var entered []*container.Container
	defer func() {
		for _, x := range entered {
			x.Release()
		}
	}()
	for _, name := range names {
		x := c.engine.acquire(name)
		if x == nil && len(req.Containers) > 0 {
			return notRunning(name, 1)
		}
		if x != nil { // nil: it has just exited
			entered = append(entered, x)
		}
	}
	if len(entered) == 0 {
		return refuse("no container of it is running", "podrun ps shows its state", 1)
	}
	for _, x := range entered {
		if err := x.Signal(unix.Signal(req.Signal)); err != nil {
			return refuse(err.Error(), "", 1)
		}
	}
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}

// running returns the names of the running containers.
func (e *engine) running() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, r := range e.runs {
		if r.container != nil && r.container.Exit == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// setCondition sets a pod condition for a client, unless podrun sets that condition itself.
func (c *control) setCondition(conn *net.UnixConn, req *wire.ConditionRequest, _ []*os.File) error {
	switch {
	case req.Type == "" || lifecycle.OwnCondition(req.Type):
		return &wire.Error{
			Message: fmt.Sprintf("the condition %q is computed by podrun: it cannot be set", req.Type), Code: 2,
			Hint: "conditions of spec.readinessGates can be set",
		}
	case !slices.Contains([]string{"True", "False", "Unknown"}, req.Status):
		return &wire.Error{Message: fmt.Sprintf("a condition must be True, False or Unknown, not %q", req.Status), Code: 2}
	}
	c.engine.emit(lifecycle.Event{Kind: lifecycle.ConditionSet, Condition: req.Type, Status: req.Status, Reason: req.Reason, Message: req.Message})
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}
