package runner

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
)

// exec runs a process in a container for a client, until the process or the client ends.
func (c *control) exec(conn *net.UnixConn, req *wire.ExecRequest, files []*os.File) error {
	if err := c.refusePaused(); err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: err})
	}
	x := c.engine.acquire(req.Container)
	if x == nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{
			Message: fmt.Sprintf("container %s is not running", req.Container), Code: 125,
			Hint: "podrun ps shows its state",
		}})
	}
	defer x.Release()
	run, attached, failed := x.Exec(c.engine.currentSandbox(), req, files)
	for _, f := range files {
		f.Close() // the process has its own copy; one kept here would keep the client's pipe open
	}
	if failed != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: failed})
	}
	if err := attached.Started(conn); err != nil {
		run.Signal(unix.SIGKILL)
	}
	defer attached.Close()
	go attached.ServeClient(conn, run)
	code := container.ExitCode(run)
	return wire.WriteFrame(conn, wire.Frame{Exit: &code})
}

// acquire returns a running container and prevents its removal until Release. It returns nil if there is
// none.
func (e *engine) acquire(name string) *container.Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.runs[name]
	if r == nil || r.container == nil || r.container.Exit != nil {
		return nil
	}
	r.container.Acquire()
	return r.container
}
