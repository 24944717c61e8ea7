package runner

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/output"
)

// attach attaches a client to a running container until the client disconnects or the container ends.
func (c *control) attach(conn *net.UnixConn, req *wire.AttachRequest, files []*os.File) error {
	refuse := func(hint, format string, args ...any) error {
		return &wire.Error{Message: fmt.Sprintf(format, args...), Hint: hint, Code: 125}
	}
	x := c.engine.acquire(req.Container)
	if x == nil {
		return notRunning(req.Container, 125)
	}
	defer x.ReleaseInput(c.engine.handoff, req)
	input, err := x.OpenInput(req)
	if err == nil {
		defer container.CloseFiles(input)
	}
	x.Release() // removing the container does not wait for the client
	if err != nil {
		return refuse("", "%v", err)
	}
	s, err := x.Subscribe(c.engine.currentPlan().Name, files, req.FromStart)
	container.CloseFiles(files...) // a descriptor kept here would keep the client from reading end of file
	if errors.Is(err, output.ErrEnded) {
		return refuse("podrun logs shows what it has written", "container %s is not running", req.Container)
	}
	if err != nil {
		return refuse("", "%v", err)
	}
	defer x.Broadcaster.Unsubscribe(s)
	var theirs []*os.File
	if input != nil {
		theirs = []*os.File{input}
	}
	if err := wire.WriteFrame(conn, wire.Frame{Started: true}, theirs...); err != nil {
		return nil // the client has disconnected already
	}
	container.CloseFiles(input)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			msg, err := wire.ReadControl(conn)
			if err != nil {
				return // the client has disconnected
			}
			if msg.EOF {
				x.ReleaseInput(c.engine.handoff, req)
			}
		}
	}()
	select {
	case <-gone:
		return nil
	case <-x.Broadcaster.Done:
		return wire.WriteFrame(conn, wire.Frame{Exit: &x.Broadcaster.ExitCode})
	}
}
