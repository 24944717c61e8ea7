// Package relay joins two TCP connections as if they were one: bytes, half-closes and
// resets go through, whatever is idle costs no buffer.
package relay

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Join passes on what a and b say until both have ended, closes both and returns. A reset
// of one side resets the other.
func Join(a, b *net.TCPConn) {
	j := joint{a: a, b: b}
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.carry(a, b)
	}()
	j.carry(b, a)
	<-done
	a.Close()
	b.Close()
}

type joint struct {
	a, b  *net.TCPConn
	ended atomic.Int32 // directions that have come to their end
}

// past is a deadline that ends a wait at once.
var past = time.Unix(0, 1)

// carry is one direction.
func (j *joint) carry(dst, src *net.TCPConn) {
	err := move(dst, src)
	if errors.Is(err, io.EOF) {
		err = dst.CloseWrite()
	}
	if err == nil {
		if j.ended.Add(1) == 2 {
			j.a.SetReadDeadline(past)
			j.b.SetReadDeadline(past)
			return
		}
		err = reset(src)
	}
	if err != nil {
		Reset(j.a)
		Reset(j.b)
	}
}

// Reset closes a connection as one that was broken: the other side sees a reset.
func Reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// reset waits for the reset of a connection whose input has ended: its other direction
// may be silent, and would not see it. It returns nil when the read deadline has come.
func reset(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var broken error
	err = raw.Read(func(fd uintptr) bool {
		if errno, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || errno != 0 {
			broken = errors.Join(err, syscall.Errno(errno))
			return true
		}
		return false
	})
	if errors.Is(err, syscall.ETIMEDOUT) || isTimeout(err) {
		return nil
	}
	return errors.Join(err, broken)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// small is up to how much is read and written; more than that at once is spliced.
// bulk is what a pipe holds: with 1 MiB as much goes out, and half as much comes in.
const (
	small = 16 << 10
	bulk  = 256 << 10
)

// move passes on what src says until its end, io.EOF, or an error. What comes in small
// portions is read and written, which is quicker; a stream goes through a pipe, within
// the kernel. Buffer and pipe are held while there is something in them.
func move(dst, src *net.TCPConn) error {
	from, err := src.SyscallConn()
	if err != nil {
		return err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	for {
		n, err := copyOnce(to, from)
		if err != nil {
			return err
		}
		if n == small {
			if err := stream(to, from); err != nil {
				return err
			}
		}
	}
}

// copyOnce waits for input and passes on up to a buffer of it.
func copyOnce(to, from syscall.RawConn) (n int, err error) {
	var held *[small]byte
	defer func() {
		if held != nil {
			buffers.Put(held)
		}
	}()
	rerr := from.Read(func(fd uintptr) bool {
		if held == nil {
			held = buffers.Get().(*[small]byte)
		}
		n, err = unix.Read(int(fd), held[:])
		if err == unix.EAGAIN {
			buffers.Put(held)
			held = nil
			return false
		}
		return true
	})
	switch {
	case rerr != nil:
		return 0, rerr
	case err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, writeAll(to, held[:n])
}

func writeAll(to syscall.RawConn, b []byte) error {
	for len(b) > 0 {
		var n int
		var err error
		werr := to.Write(func(fd uintptr) bool {
			n, err = unix.Write(int(fd), b)
			return err != unix.EAGAIN
		})
		switch {
		case werr != nil:
			return werr
		case err == nil:
			b = b[n:]
		case err != unix.EINTR:
			return err
		}
	}
	return nil
}
