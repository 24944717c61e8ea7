package cli

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// whileRead does something that writes to out now and then, until nobody reads that
// any more: without it a command in a pipe would stay until it has something to write.
func whileRead(ctx context.Context, out io.Writer, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-unread(out):
		cancel()
		<-done
		return &exitError{code: exitUnread}
	}
}

// unread is closed when out is the end of a pipe or a socket whose other end is gone.
func unread(out io.Writer) <-chan struct{} {
	gone := make(chan struct{})
	file, ok := out.(*os.File)
	if !ok {
		return gone
	}
	go func() {
		// Without events to wait for only errors and hang-ups end it.
		at := []unix.PollFd{{Fd: int32(file.Fd())}}
		for {
			switch _, err := unix.Poll(at, -1); err {
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
