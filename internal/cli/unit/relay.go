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

// outputPipe copies the containers' output from supervisors to the unit's output. The journal attributes
// a line to the unit only if a process of the unit has written it, and the pods' processes are not in the
// unit. While the unit loop runs, it copies.
type outputPipe struct {
	from, end *os.File // the ends of a pipe
	to        io.Writer
	copying   sync.WaitGroup
}

// drainTime limits the wait for the end of the output.
const drainTime = time.Second

func newOutputPipe(to io.Writer) (*outputPipe, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the containers' output: %w", err)
	}
	return (&outputPipe{from: from, end: end, to: to}).copy(), nil
}

// reopenOutputPipe continues with the pipe whose read end is fd.
func reopenOutputPipe(to io.Writer, fd int) (*outputPipe, error) {
	syscall.CloseOnExec(fd)
	end, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("resume the containers' output: %w", err)
	}
	return (&outputPipe{from: os.NewFile(uintptr(fd), "containers' output"), end: end, to: to}).copy(), nil
}

func (r *outputPipe) copy() *outputPipe {
	r.copying.Go(func() {
		// The wrappers force plain reads and writes: everything that was read is written before the copy
		// stops.
		_, _ = io.Copy(struct{ io.Writer }{r.to}, struct{ io.Reader }{r.from})
	})
	return r
}

// handOver stops copying and returns a descriptor of the read end for the next reader. Nothing here
// closes it.
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

// finish copies the remaining output of pods that have ended.
func (r *outputPipe) finish() {
	r.end.Close()
	_ = r.from.SetReadDeadline(time.Now().Add(drainTime)) // an exec'd process may still hold the pipe
	r.copying.Wait()
	r.from.Close()
}
