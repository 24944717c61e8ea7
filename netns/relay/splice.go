package relay

import "golang.org/x/sys/unix"

// small is up to how much is read and written; more than that at once is spliced.
// bulk is what a pipe holds: with 1 MiB as much goes out, and half as much comes in.
const (
	small = 16 << 10
	bulk  = 256 << 10
)

// spares is how many empty pipes a loop keeps: to make one takes as long as to fill it.
const spares = 2

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

// lend gives a direction a pipe. Without one (the user's share of them, or descriptors, are
// used up) all is read and written.
func (l *Loop) lend(w *direction) bool {
	if w.pipe != nil {
		return true
	}
	if n := len(l.spare); n > 0 {
		p := l.spare[n-1]
		w.pipe, l.spare = &p, l.spare[:n-1]
		return true
	}
	p, err := newPipe()
	if err != nil {
		return false
	}
	w.pipe = &p
	return true
}

// giveBack takes a direction's pipe, and what is in it is lost.
func (l *Loop) giveBack(w *direction) {
	if w.pipe == nil {
		return
	}
	if p := *w.pipe; w.piped == 0 && len(l.spare) < spares {
		l.spare = append(l.spare, p)
	} else {
		p.close()
	}
	w.pipe, w.piped = nil, 0
}

// spareNothing is for a loop that carries nothing: what its pipes may hold counts for their
// user, whose share is 64 MiB (pipe-user-pages-soft).
func (l *Loop) spareNothing() {
	for _, p := range l.spare {
		p.close()
	}
	l.spare = nil
}
