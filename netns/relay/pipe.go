package relay

import "golang.org/x/sys/unix"

// copySize is the maximum that is read and written; larger amounts are spliced. pipeSize is the
// capacity of a pipe: with 1 MiB outgoing throughput is the same, incoming half.
const (
	copySize = 16 << 10
	pipeSize = 256 << 10
)

// maxIdlePipes is how many empty pipes a loop keeps: making one takes as long as filling it.
const maxIdlePipes = 2

// pipe is a kernel pipe for the data of a stream.
type pipe struct{ r, w int }

func newPipe() (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return pipe{}, err
	}
	// If the user has too many pipes it stays small.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	return pipe{fds[0], fds[1]}, nil
}

func (p pipe) close() {
	unix.Close(p.r)
	unix.Close(p.w)
}

// takePipe gives a direction a pipe. Without one (the user's limit or the descriptors are used up)
// all data is read and written.
func (l *Loop) takePipe(w *pump) bool {
	if w.pipe != nil {
		return true
	}
	if n := len(l.idlePipes); n > 0 {
		p := l.idlePipes[n-1]
		w.pipe, l.idlePipes = &p, l.idlePipes[:n-1]
		return true
	}
	p, err := newPipe()
	if err != nil {
		return false
	}
	w.pipe = &p
	return true
}

// returnPipe takes a direction's pipe back; data in it is lost.
func (l *Loop) returnPipe(w *pump) {
	if w.pipe == nil {
		return
	}
	if p := *w.pipe; w.piped == 0 && len(l.idlePipes) < maxIdlePipes {
		l.idlePipes = append(l.idlePipes, p)
	} else {
		p.close()
	}
	w.pipe, w.piped = nil, 0
}

// closeIdlePipes is for a loop without connections: the capacity of its pipes counts for their
// user, whose limit is 64 MiB (pipe-user-pages-soft).
func (l *Loop) closeIdlePipes() {
	for _, p := range l.idlePipes {
		p.close()
	}
	l.idlePipes = nil
}
