package runner

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/podrun/podrun/internal/wire"
)

// join attaches a client to a container that runs, until one of them ends.
func (c *control) join(conn *net.UnixConn, req *wire.JoinRequest, files []*os.File) error {
	refuse := func(hint, format string, args ...any) error {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: fmt.Sprintf(format, args...), Hint: hint, Code: 125}})
	}
	x := c.engine.enter(req.Container)
	if x == nil {
		return refuse("podrun ps shows its state", "container %s is not running", req.Container)
	}
	defer x.leaveInput(c.engine.estate, req)
	input, err := x.inputFor(req)
	if err == nil {
		defer closeFiles(input)
	}
	x.release() // its end does not wait for us
	if err != nil {
		return refuse("", "%v", err)
	}
	s, err := x.listen(c.engine.current().Name, files, req.FromStart)
	for _, f := range files {
		f.Close() // an end of ours would keep the client from the end of the output
	}
	if errors.Is(err, errEnded) {
		return refuse("podrun logs shows what it has written", "container %s is not running", req.Container)
	}
	if err != nil {
		return refuse("", "%v", err)
	}
	defer x.audience.leave(s)
	var theirs []*os.File
	if input != nil {
		theirs = []*os.File{input}
	}
	if err := wire.WriteFrame(conn, wire.Frame{Started: true}, theirs...); err != nil {
		return nil // it has gone already
	}
	closeFiles(input)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			msg, err := wire.ReadControl(conn)
			if err != nil {
				return // the client's end
			}
			if msg.EOF {
				x.leaveInput(c.engine.estate, req)
			}
		}
	}()
	select {
	case <-gone:
		return nil
	case <-x.audience.over:
		return wire.WriteFrame(conn, wire.Frame{Exit: &x.audience.code})
	}
}
