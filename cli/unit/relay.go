package unit

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputPipe copies what supervisors write of their containers' output to the unit's. The
// journal counts a line as the unit's only if a process of the unit has written it, and
// the pods' processes are none. While the front waits, its loop in C does this.
type outputPipe struct {
	from, end *os.File // of a pipe
	to        io.Writer
	copying   sync.WaitGroup
}

// drainTime is how long the end of the output is waited for.
const drainTime = time.Second

func newOutputPipe(to io.Writer) (*outputPipe, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the containers' output: %w", err)
	}
	return (&outputPipe{from: from, end: end, to: to}).copy(), nil
}

// ReopenOutputPipe goes on with a pipe of which there is the read end, fd.
func ReopenOutputPipe(to io.Writer, fd int) (*outputPipe, error) {
	syscall.CloseOnExec(fd)
	end, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("go on with the containers' output: %w", err)
	}
	return (&outputPipe{from: os.NewFile(uintptr(fd), "containers' output"), end: end, to: to}).copy(), nil
}

func (r *outputPipe) copy() *outputPipe {
	r.copying.Go(func() {
		// Plain reads and writes: what has been read has been written when this is told to end.
		_, _ = io.Copy(struct{ io.Writer }{r.to}, struct{ io.Reader }{r.from})
	})
	return r
}

// handOver stops copying and gives a descriptor of the read end, which nothing here closes,
// to who goes on with it.
func (r *outputPipe) handOver() (int, error) {
	if err := r.from.SetReadDeadline(time.Now()); err != nil {
		return -1, fmt.Errorf("hand the containers' output over: %w", err)
	}
	r.copying.Wait()
	r.end.Close()
	defer r.from.Close()
	fd, err := unix.FcntlInt(r.from.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, fmt.Errorf("hand the containers' output over: %w", err)
	}
	return fd, nil
}

// Finish copies what the pods, which have ended, have left.
func (r *outputPipe) Finish() {
	r.end.Close()
	_ = r.from.SetReadDeadline(time.Now().Add(drainTime)) // an exec'd process may still have the pipe
	r.copying.Wait()
	r.from.Close()
}
