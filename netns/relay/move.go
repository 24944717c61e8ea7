package relay

import (
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
)

// turnLength is how many bytes of one direction are passed on before others have their turn.
const turnLength = 4 * bulk

// move passes on what there is. Small portions are read and written, which is quicker; a
// stream goes through a pipe, within the kernel. Nothing is held while nothing is under way.
// more says that there may be more to do at once; the end is io.EOF.
func (l *Loop) move(w *direction) (more bool, err error) {
	for moved := 0; moved < turnLength; {
		if blocked, err := l.write(w); blocked || err != nil {
			return false, err
		}
		if !w.src.ready {
			l.giveBack(w)
			return false, nil
		}
		n, err := l.read(w)
		switch {
		case err == unix.EAGAIN && w.bulk && w.src.whole:
			w.bulk = false // to splice stops at what is urgent
		case err == unix.EAGAIN:
			w.src.ready, w.src.whole, w.bulk = false, false, false
		case err == unix.EINTR:
		case err != nil:
			return false, err
		case n == 0:
			l.giveBack(w)
			return false, io.EOF
		}
		moved += max(n, 0)
	}
	return true, nil
}

// read takes what there is; it is written at once if it can be.
func (l *Loop) read(w *direction) (n int, err error) {
	if w.bulk && l.lend(w) {
		n, err = brief.Splice(w.src.fd, w.pipe.w, bulk)
		w.piped = max(n, 0)
		w.restrain()
		l.spin.streamed()
		return n, err
	}
	if w.src.empty {
		return 0, nil
	}
	n, err = brief.Read(w.src.fd, l.buffer[:])
	if err != nil || n == 0 {
		return n, err
	}
	w.src.empty = n < small && w.src.last && !w.src.urgent && !w.src.failed
	if w.bulk = n == small; !w.bulk && !w.src.whole {
		w.src.ready = false // the next that comes is told of
	}
	w.rest = l.buffer[:n]
	blocked, err := l.write(w)
	if blocked {
		w.rest = slices.Clone(w.rest)
	}
	return n, err
}

// hurry is called before something is written. The first is sent at once in any case, and
// many connections have no second.
func (w *direction) hurry() {
	if w.wrote && !w.prompt {
		w.prompt = true
		_ = brief.Set(w.dst.fd, unix.SOL_TCP, unix.TCP_NODELAY, 1)
	}
}

// write passes on what has been read.
func (l *Loop) write(w *direction) (blocked bool, err error) {
	for w.piped > 0 || len(w.rest) > 0 {
		if !w.dst.open {
			return true, nil
		}
		var n int
		w.hurry()
		if w.piped > 0 {
			n, err = brief.Splice(w.pipe.r, w.dst.fd, w.piped)
			w.piped -= max(n, 0)
		} else {
			n, err = brief.Send(w.dst.fd, w.rest, unix.MSG_NOSIGNAL)
			w.rest = w.rest[max(n, 0):]
		}
		w.wrote = w.wrote || n > 0
		switch {
		case err == unix.EAGAIN:
			w.dst.open = false
			if !w.dst.wide {
				w.dst.wide = true
				if err := l.widen(w.dst.fd, Edges); err != nil {
					return false, err
				}
			}
		case err != nil && err != unix.EINTR:
			return false, err
		}
	}
	w.rest = nil
	return false, nil
}
