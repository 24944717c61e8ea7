package relay

import (
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

var buffers = sync.Pool{New: func() any { return new([small]byte) }}

// stream splices until src has nothing to read. Without a pipe (the user's share of
// them, or descriptors, are used up) it does nothing, and all is read and written.
func stream(to, from syscall.RawConn) error {
	p, err := newPipe()
	if err != nil {
		return nil
	}
	defer p.close()
	for {
		n, err := p.fill(from)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		}
		if err := p.drain(to, n); err != nil {
			return err
		}
	}
}

// pipe is what a stream goes through.
type pipe struct{ r, w int }

func newPipe() (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return pipe{}, err
	}
	// The user may have many already: then it stays small.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, bulk)
	return pipe{fds[0], fds[1]}, nil
}

func (p pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// fill takes what there is.
func (p pipe) fill(from syscall.RawConn) (n int64, err error) {
	for {
		rerr := from.Read(func(fd uintptr) bool {
			n, err = splice(int(fd), p.w, bulk)
			return true
		})
		if rerr != nil {
			return 0, rerr
		}
		if err != unix.EINTR {
			return n, err
		}
	}
}

// drain passes n bytes on.
func (p pipe) drain(to syscall.RawConn, n int64) error {
	for n > 0 {
		var w int64
		var err error
		werr := to.Write(func(fd uintptr) bool {
			w, err = splice(p.r, int(fd), n)
			return err != unix.EAGAIN
		})
		switch {
		case werr != nil:
			return werr
		case err == nil:
			n -= w
		case err != unix.EINTR:
			return err
		}
	}
	return nil
}

// splice moves at most n bytes, without waiting. How the system call tells their number
// depends on the processor.
func splice(from, to int, n int64) (int64, error) {
	moved, err := unix.Splice(from, nil, to, nil, int(n), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	return int64(moved), err
}
