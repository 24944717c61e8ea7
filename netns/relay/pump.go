package relay

import (
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// turnBytes is how many bytes of one direction are forwarded before other connections get their
// turn.
const turnBytes = 4 * pipeSize

// pump forwards available data. Small amounts are read and written, which is faster; a stream goes
// through a pipe, within the kernel. No buffer is held while no data is in transit. more reports
// that there may be more to do at once; the end is io.EOF.
func (l *Loop) pump(w *pump) (more bool, err error) {
	for moved := 0; moved < turnBytes; {
		if blocked, err := l.write(w); blocked || err != nil {
			return false, err
		}
		if !w.src.readable {
			l.returnPipe(w)
			return false, nil
		}
		n, err := l.read(w)
		switch {
		case err == unix.EAGAIN && w.bulk && w.src.untilEmpty:
			w.bulk = false // splice stops at urgent data
		case err == unix.EAGAIN:
			w.src.readable, w.src.untilEmpty, w.bulk = false, false, false
		case err == unix.EINTR:
		case err != nil:
			return false, err
		case n == 0:
			l.returnPipe(w)
			return false, io.EOF
		}
		moved += max(n, 0)
	}
	return true, nil
}

// read reads available data; the caller writes it at once if possible.
func (l *Loop) read(w *pump) (n int, err error) {
	if w.bulk && l.takePipe(w) {
		n, err = rawsys.Splice(w.src.fd, w.pipe.w, pipeSize)
		w.piped = max(n, 0)
		w.clampWindow()
		l.spin.streamed()
		return n, err
	}
	if w.src.empty {
		return 0, nil
	}
	n, err = rawsys.Read(w.src.fd, l.buffer[:])
	if err != nil || n == 0 {
		return n, err
	}
	w.src.empty = n < copySize && w.src.halfClosed && !w.src.urgent && !w.src.failed
	if w.bulk = n == copySize; !w.bulk && !w.src.untilEmpty {
		w.src.readable = false // the loop reports the next data
	}
	w.pending = l.buffer[:n]
	blocked, err := l.write(w)
	if blocked {
		w.pending = slices.Clone(w.pending)
	}
	return n, err
}

// setNoDelay is called before a write. The kernel sends the first data at once in any case, and
// many connections have only one write.
func (w *pump) setNoDelay() {
	if w.wrote && !w.noDelay {
		w.noDelay = true
		_ = rawsys.SetsockoptInt(w.dst.fd, unix.SOL_TCP, unix.TCP_NODELAY, 1)
	}
}

// write writes what has been read.
func (l *Loop) write(w *pump) (blocked bool, err error) {
	for w.piped > 0 || len(w.pending) > 0 {
		if !w.dst.writable {
			return true, nil
		}
		var n int
		w.setNoDelay()
		if w.piped > 0 {
			n, err = rawsys.Splice(w.pipe.r, w.dst.fd, w.piped)
			w.piped -= max(n, 0)
		} else {
			n, err = rawsys.Send(w.dst.fd, w.pending, unix.MSG_NOSIGNAL)
			w.pending = w.pending[max(n, 0):]
		}
		w.wrote = w.wrote || n > 0
		switch {
		case err == unix.EAGAIN:
			w.dst.writable = false
			if !w.dst.watchesWrites {
				w.dst.watchesWrites = true
				if err := l.setEvents(w.dst.fd, ReadWriteEdges); err != nil {
					return false, err
				}
			}
		case err != nil && err != unix.EINTR:
			return false, err
		}
	}
	w.pending = nil
	return false, nil
}
