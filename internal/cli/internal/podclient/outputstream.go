package podclient

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OutputStream copies a command's output to one of the local streams. The command's children may hold the
// other end longer than the command lives. All output of the command itself is copied, but its children
// are not waited for.
type OutputStream struct {
	Src *os.File // a pipe or a terminal's master, in non-blocking mode
	Dst io.Writer
}

// Copy returns at the end of Src, or when everything that was there at the time of Drain has been copied.
func (o *OutputStream) Copy() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := o.Src.Read(buf)
		if n > 0 {
			if _, err := o.Dst.Write(buf[:n]); err != nil {
				return fmt.Errorf("write the command's output: %w", err)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			return o.rest(buf)
		case errors.Is(err, io.EOF), errors.Is(err, unix.EIO): // EIO: the terminal has no other user left
			return nil
		default:
			return fmt.Errorf("read the command's output: %w", err)
		}
	}
}

// Drain makes Copy return after the data that is present, because the command has ended.
func (o *OutputStream) Drain() { o.Src.SetReadDeadline(time.Now()) }

// maxRest is the maximum capacity of a pipe (/proc/sys/fs/pipe-max-size).
const maxRest = 1 << 20

// rest copies the contents of the pipe without waiting for more.
func (o *OutputStream) rest(buf []byte) error {
	if err := o.Src.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := o.Src.SyscallConn()
	if err != nil {
		return err
	}
	var werr error
	err = raw.Read(func(fd uintptr) bool {
		for copied := 0; copied < maxRest && werr == nil; {
			n, err := unix.Read(int(fd), buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 {
				break
			}
			copied += n
			_, werr = o.Dst.Write(buf[:n])
		}
		return true
	})
	return errors.Join(err, werr)
}

// pollable returns a File for f's descriptor, which came from another process, whose reads can be ended
// by a deadline. It closes f.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the command's terminal: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take the command's terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}
