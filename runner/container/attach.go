package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
)

// OpenInput returns a descriptor to which a client writes the container's input. With a terminal every client
// gets a descriptor, to set the window size; without one, a client that only reads the output gets nil.
func (x *Container) OpenInput(req *wire.AttachRequest) (*os.File, error) {
	x.stdinMu.Lock()
	defer x.stdinMu.Unlock()
	switch {
	case x.terminal != nil:
		return dup(x.terminal.Master)
	case !req.Stdin:
		return nil, nil
	case !x.Plan.Stdin:
		return nil, fmt.Errorf("container %s accepts no input: stdin is false", req.Container)
	case x.stdin == nil:
		return nil, fmt.Errorf("container %s accepts no more input: stdinOnce is true and the first client has detached", req.Container)
	}
	return dup(x.stdin)
}

// ReleaseInput is called when a client that may have had the container's input disconnects or has sent EOF. With
// stdinOnce it closes the input for good, except of a terminal (kubelet: stdinOnce).
func (x *Container) ReleaseInput(h *handoff.Record, req *wire.AttachRequest) {
	if req.Stdin && x.Plan.StdinOnce && !x.Plan.TTY {
		x.closeInput(h)
	}
}

// dup duplicates a file's descriptor and keeps its mode.
func dup(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var d *os.File
	cerr := raw.Control(func(fd uintptr) { d, err = dupFD(int(fd)) })
	if err == nil {
		err = cerr
	}
	return d, err
}

// dupFD duplicates the descriptor fd.
func dupFD(fd int) (*os.File, error) {
	d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	return os.NewFile(uintptr(d), "duplicate"), nil
}

// Subscribe sends a client what the container writes from now on, or from its first byte on.
func (x *Container) Subscribe(pod string, files []*os.File, fromStart bool) (*output.Subscriber, error) {
	s, err := output.NewSubscriber(pod, files)
	if err != nil {
		return nil, err
	}
	if !fromStart {
		x.Broadcaster.Subscribe(s)
		return s, nil
	}
	return s, x.Log.SubscribeFromStart(x.Broadcaster, s)
}
