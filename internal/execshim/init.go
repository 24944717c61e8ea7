package execshim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/podrun/podrun/internal/protocol"
)

// Init is the configuration of a process that libcontainer makes and that executes the exec shim.
// The exec shim loads the filter, drops the capabilities needed for that, and executes the
// process's own program. The nil Init stands for a process without the exec shim.
type Init struct {
	program       string
	config        []byte
	local, remote *os.File
	file          *os.File
}

// RequiredCapabilities are the capabilities that a process needs in addition when it executes the
// exec shim: CAP_SETPCAP and CAP_SYS_ADMIN. They also prevent processes of the container that have
// fewer capabilities, except those with CAP_SYS_PTRACE, from tracing it before it has its filter.
const RequiredCapabilities = 1<<8 | 1<<21

// PrepareInit prepares an Init for the arguments args. The caller must call Close in the end.
func (p *Program) PrepareInit(o *Config, args []string) (*Init, error) {
	config, err := o.encode(false)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, errors.New("no command to run")
	}
	b := &Init{program: args[0], config: config}
	if b.file, err = p.open(nil); err != nil {
		return nil, err
	}
	if b.local, b.remote, err = newChannel(); err != nil {
		return nil, errors.Join(err, b.file.Close())
	}
	return b, nil
}

// Proceed sends the configuration, for which the exec shim waits. The process need not exist yet: the socket's buffer
// holds the largest configuration.
func (b *Init) Proceed() error {
	if b == nil {
		return nil
	}
	if _, err := b.local.Write(b.config); err != nil {
		return fmt.Errorf("send the configuration to the exec shim: %w", err)
	}
	return nil
}

// Args returns the command line that libcontainer executes, for the arguments args of the program.
func (b *Init) Args(args []string) []string {
	return append([]string{fmt.Sprintf("/proc/self/fd/%d", protocol.FDShimTarget)}, args...)
}

// Files returns the descriptors of the process, from 3 on.
func (b *Init) Files() []*os.File { return []*os.File{b.file, b.remote} }

// Started waits until the process has executed its program. The process must have been made, so
// that it alone has the other end of the channel. The error may be a *StartError, or the cause of
// the end of ctx: then the kernel still executes, from a file system that does not respond.
func (b *Init) Started(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.remote.Close()
	stop := context.AfterFunc(ctx, func() { _ = b.local.SetDeadline(time.Now()) })
	defer stop()
	var h replies
	err := h.read(b.local, b.program)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(ctx)
	case errors.Is(err, syscall.ECONNRESET): // it has not read its configuration
		return errors.New("the process ended before its program was executed")
	case err != nil:
		return err
	case h.failed != nil:
		return h.failed
	}
	return nil
}

// Close closes the channel and the program.
func (b *Init) Close() {
	if b == nil {
		return
	}
	b.local.Close()
	b.remote.Close()
	b.file.Close()
}
