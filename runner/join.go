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
	x.execs.Done() // its end does not wait for us
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

// inputFor is a descriptor for a client to write to, or nil for one that only listens to a
// container without a terminal, whose size it may set.
func (x *container) inputFor(req *wire.JoinRequest) (*os.File, error) {
	x.inputs.Lock()
	defer x.inputs.Unlock()
	switch {
	case x.terminal != nil:
		return duplicate(x.terminal.master)
	case !req.Stdin:
		return nil, nil
	case !x.plan.Stdin:
		return nil, fmt.Errorf("container %s takes no input: its stdin is false", req.Container)
	case x.stdin == nil:
		return nil, fmt.Errorf("container %s takes no more input: its stdinOnce is true, and the first who was attached has gone", req.Container)
	}
	return duplicate(x.stdin)
}

// leaveInput is for when a client leaves that had the input: after the first there is no
// other, where the manifest says so (kubelet: stdinOnce; of a terminal it means nothing).
func (x *container) leaveInput(left *estate, req *wire.JoinRequest) {
	if req.Stdin && x.plan.StdinOnce && !x.plan.TTY {
		x.endInput(left)
	}
}

// duplicate is another descriptor of a file, in the mode that it is in.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var d *os.File
	cerr := raw.Control(func(fd uintptr) { d, err = dupFile(int(fd)) })
	if err == nil {
		err = cerr
	}
	return d, err
}
