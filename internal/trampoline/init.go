package trampoline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Init is a process that libcontainer makes and that executes the trampoline: it loads
// the filter, drops what rights that took, and executes the process's own program.
// The nil Bounce is a process that does without.
type Init struct {
	program      string
	ours, theirs *os.File
	file         *os.File
}

// RequiredCapabilities are the capabilities that a process must have in addition when it executes the
// trampoline: CAP_SETPCAP and CAP_SYS_ADMIN. They also keep everybody in the container who
// has less, CAP_SYS_PTRACE apart, from tracing it before it has its filter.
const RequiredCapabilities = 1<<8 | 1<<21

// PrepareInit prepares such a process for args. Close is to be called in the end.
func (p *Program) PrepareInit(o *Config, args []string) (*Init, error) {
	order, err := o.encode(false)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, errors.New("no command to run")
	}
	b := &Init{program: args[0]}
	if b.file, err = p.open(nil); err != nil {
		return nil, err
	}
	if b.ours, b.theirs, err = newChannel(); err != nil {
		return nil, errors.Join(err, b.file.Close())
	}
	if _, err := b.ours.Write(order); err != nil { // it has room for the largest
		b.Close()
		return nil, fmt.Errorf("send the configuration to the trampoline: %w", err)
	}
	return b, nil
}

// Args are what libcontainer is to execute, for the arguments args of the program.
func (b *Init) Args(args []string) []string { return append([]string{"/proc/self/fd/3"}, args...) }

// Files are the descriptors that the process is to have, from 3 on.
func (b *Init) Files() []*os.File { return []*os.File{b.file, b.theirs} }

// Started waits until the process has executed its program. The process must have been
// made: after that nobody but it has the other end. The error may be a *StartError, or why
// ctx has ended: then the kernel still executes, from a file system that does not answer.
func (b *Init) Started(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.theirs.Close()
	stop := context.AfterFunc(ctx, func() { _ = b.ours.SetDeadline(time.Now()) })
	defer stop()
	var h replies
	err := h.read(b.ours, b.program)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(ctx)
	case errors.Is(err, syscall.ECONNRESET): // it has not read its order
		return errors.New("the process ended before its program was executed")
	case err != nil:
		return err
	case h.failed != nil:
		return h.failed
	}
	return nil
}

// Close lets go of the channel and the program.
func (b *Init) Close() {
	if b == nil {
		return
	}
	b.ours.Close()
	b.theirs.Close()
	b.file.Close()
}
