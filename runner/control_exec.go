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
		return err
	}
	x := c.engine.acquire(req.Container)
	if x == nil {
		return notRunning(req.Container, 125)
	}
	defer x.Release()
	run, attached, err := x.Exec(c.engine.currentSandbox(), req, files)
	container.CloseFiles(files...) // the process has its own copies; one kept here would keep the client's pipe open
	if err != nil {
		return err
	}
	if err := attached.Started(conn); err != nil {
		run.Signal(unix.SIGKILL)
	}
	defer attached.Close()
	go attached.ServeClient(conn, run)
	code := container.ExitCode(run)
	return wire.WriteFrame(conn, wire.Frame{Exit: &code})
}

// notRunning is the error of a request to a container that does not run.
func notRunning(name string, code int) *wire.Error {
	return &wire.Error{Message: fmt.Sprintf("container %s is not running", name), Code: code, Hint: "podrun ps shows its state"}
}

// acquire returns a running container and prevents its removal until Release. It returns nil if there is
// none.
func (e *engine) acquire(name string) *container.Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.instances[name]
	if r == nil || r.container == nil || r.container.Exit != nil {
		return nil
	}
	r.container.Acquire()
	return r.container
}
