package cmdutil

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
)

// WhileRead runs do, which writes to out from time to time, until the reader of out is gone. Without it a
// command in a pipe would keep running until its next write.
func WhileRead(ctx context.Context, out io.Writer, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-readerGone(out):
		cancel()
		<-done
		return &exitcode.Error{Code: exitcode.BrokenPipe}
	}
}

// readerGone returns a channel that is closed when out is a pipe or a socket whose other end is gone.
func readerGone(out io.Writer) <-chan struct{} {
	gone := make(chan struct{})
	file, ok := out.(*os.File)
	if !ok {
		return gone
	}
	go func() {
		// No events are requested, so only errors and hang-ups end the poll.
		polled := []unix.PollFd{{Fd: int32(file.Fd())}}
		for {
			switch _, err := unix.Poll(polled, -1); err {
			case nil:
				close(gone)
				return
			case unix.EINTR:
			default:
				return
			}
		}
	}()
	return gone
}

// WithTimeout is context.WithTimeout, where the timeout 0 means no limit.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// Interruptible runs do and cancels its context at the first signal. At the second it no longer waits for
// do.
func Interruptible(ctx context.Context, signals <-chan os.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case sig := <-signals:
		cancel()
		select {
		case <-done:
		case <-signals:
		}
		return exitcode.Interrupted(sig)
	}
}

// TeeSignals sends every signal to two channels.
func TeeSignals(ctx context.Context, signals <-chan os.Signal) (a, b <-chan os.Signal) {
	x, y := make(chan os.Signal, 8), make(chan os.Signal, 8)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s, ok := <-signals:
				if !ok {
					return
				}
				for _, c := range []chan os.Signal{x, y} {
					select {
					case c <- s:
					default: // the receiver has more signals than it reads
					}
				}
			}
		}
	}()
	return x, y
}

// UntilInterrupted runs watch until the user interrupts it, or the reader of its output is gone.
func (env *Env) UntilInterrupted(ctx context.Context, watch func(context.Context) error) error {
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return Interruptible(ctx, signals, func(ctx context.Context) error { return WhileRead(ctx, env.Out, watch) })
}

// UntilStopped runs a server until a signal, which is its normal end, or until the reader of its output is
// gone.
func (env *Env) UntilStopped(ctx context.Context, serve func(context.Context) error) error {
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return WhileRead(ctx, env.Out, serve)
}
