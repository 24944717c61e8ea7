package runner

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

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

// dupFile is another descriptor of what fd is one of.
func dupFile(fd int) (*os.File, error) {
	d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	return os.NewFile(uintptr(d), "duplicate"), nil
}

// listen has a client hear what the container writes from now on, or from its first byte on.
func (x *container) listen(pod string, files []*os.File, fromStart bool) (*seat, error) {
	s, err := newSeat(pod, files)
	if err != nil {
		return nil, err
	}
	if !fromStart {
		x.audience.enter(s)
		return s, nil
	}
	return s, x.log.enterFromStart(x.audience, s)
}
