package runner

import (
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
)

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
	for name, r := range e.instances {
		if r.container != nil && r.container.Exit == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
