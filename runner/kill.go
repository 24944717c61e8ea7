package runner

import (
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

// kill sends a signal to the processes of containers: those that are named, or all that run.
func (c *control) kill(conn *net.UnixConn, req *wire.KillRequest) error {
	refuse := func(message, hint string, code int) error {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: message, Hint: hint, Code: code}})
	}
	if req.Signal < 1 || req.Signal > maxSignal {
		return refuse(fmt.Sprintf("%d is no signal", req.Signal), "", 2)
	}
	names := req.Containers
	if len(names) == 0 {
		names = c.engine.running()
	}
	var entered []*container
	defer func() {
		for _, x := range entered {
			x.release()
		}
	}()
	for _, name := range names {
		x := c.engine.enter(name)
		if x == nil && len(req.Containers) > 0 {
			return refuse(fmt.Sprintf("container %s is not running", name), "podrun ps shows its state", 1)
		}
		if x != nil { // else it has just ended
			entered = append(entered, x)
		}
	}
	if len(entered) == 0 {
		return refuse("no container of it is running", "podrun ps shows its state", 1)
	}
	for _, x := range entered {
		if err := x.signal(unix.Signal(req.Signal)); err != nil {
			return refuse(err.Error(), "", 1)
		}
	}
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}

// running are the names of the containers that run.
func (e *engine) running() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, r := range e.runs {
		if r.container != nil && r.container.end == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
