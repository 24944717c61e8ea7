package relay

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Carry passes on what two connections say until both have ended, closes both, and has
// over called. A reset of one side resets the other, and so does the end of the loop. Both
// must not block. On the loop's thread only; each of the two may be watched, and is then
// no more.
func (l *Loop) Carry(a, b int, over func()) { l.join(a, b, over).begin() }

// Meet is Carry once b, which is connecting, is connected. If it is refused, or not answered
// in time, a is reset. end resets both, at any time.
func (l *Loop) Meet(a, b int, patience time.Duration, over func()) (end func()) {
	j := l.join(a, b, over)
	err := l.Watch(b, Writable|Once, func(uint32) {
		if AnswerOf(b) != nil {
			j.broken()
			return
		}
		j.begin()
	})
	if err != nil {
		j.broken()
		return j.broken
	}
	until := time.Now().Add(patience)
	l.Tick(func() bool {
		if !j.begun && time.Now().After(until) {
			j.broken()
		}
		return !j.begun && !j.ended
	})
	return j.broken
}

// AnswerOf is what has become of an attempt to connect.
func AnswerOf(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	return err
}

func (l *Loop) join(a, b int, over func()) *joint {
	j := &joint{loop: l, over: over}
	j.ends = [2]end{{fd: a, open: true}, {fd: b, open: true}}
	j.ways = [2]direction{{src: &j.ends[0], dst: &j.ends[1]}, {src: &j.ends[1], dst: &j.ends[0]}}
	l.joints[j] = true
	return j
}

func (j *joint) begin() {
	j.begun = true
	for i := range j.ends {
		e := &j.ends[i]
		set := j.loop.Watch
		if j.loop.watched[int32(e.fd)].tell != nil {
			set = j.loop.Change // tells anew of what has come already
		}
		if set(e.fd, edges, func(events uint32) { j.hear(e, events) }) != nil {
			j.broken()
			return
		}
	}
}

// edges: each change is told once (epoll(7)).
const edges = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET

// joint is two connections as one.
type joint struct {
	loop   *Loop
	ends   [2]end
	ways   [2]direction
	over   func()
	queued bool // in the loop's again
	begun  bool
	ended  bool
}

// end is one connection.
type end struct {
	fd     int
	ready  bool // there may be something to read
	whole  bool // what there is has to be read until nothing comes: no other event will tell
	open   bool // it takes what is written, as far as known
	failed bool // reading may say nothing of it, after an end
}

// direction is half a joint.
type direction struct {
	src, dst *end
	rest     []byte // that has been read and not been written
	bulk     bool   // it is a stream: what comes goes through pipe
	pipe     *pipe  // nil, or where piped bytes are
	piped    int
	over     bool
}

// hear is told of one end.
func (j *joint) hear(e *end, events uint32) {
	if j.ended {
		return
	}
	const last = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	if events&(unix.EPOLLIN|unix.EPOLLPRI|last) != 0 {
		e.ready = true
		e.whole = e.whole || events&(last|unix.EPOLLPRI) != 0
	}
	if events&(unix.EPOLLOUT|last) != 0 {
		e.open = true
	}
	e.failed = e.failed || events&unix.EPOLLERR != 0
	if !j.queued { // else it has its turn next
		j.goOn()
	}
}

// goOn does what can be done without waiting, for as long as it is this joint's turn.
func (j *joint) goOn() {
	if j.ended {
		return
	}
	for i := range j.ways {
		w := &j.ways[i]
		if w.over && w.src.failed {
			j.broken()
			return
		}
		if w.over {
			continue
		}
		more, err := j.loop.move(w)
		switch {
		case errors.Is(err, io.EOF):
			w.over = true
			if other := &j.ways[1-i]; w.src.failed || !other.over && unix.Shutdown(w.dst.fd, unix.SHUT_WR) != nil {
				j.broken()
				return
			}
		case err != nil:
			j.broken()
			return
		case more && !j.queued:
			j.queued = true
			j.loop.again = append(j.loop.again, j)
		}
	}
	if j.ways[0].over && j.ways[1].over {
		j.close(func(fd int) { unix.Close(fd) })
	}
}

// broken resets both ends.
func (j *joint) broken() { j.close(ResetFD) }

func (j *joint) close(how func(fd int)) {
	if j.ended {
		return
	}
	j.ended = true
	for i := range j.ways {
		j.loop.giveBack(&j.ways[i])
	}
	for _, e := range j.ends {
		j.loop.Forget(e.fd, true)
		how(e.fd)
	}
	if delete(j.loop.joints, j); len(j.loop.joints) == 0 {
		j.loop.spareNothing()
	}
	j.over()
}

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
		n, err = splice(w.src.fd, w.pipe.w, bulk)
		w.piped = max(n, 0)
		return n, err
	}
	n, err = unix.Read(w.src.fd, l.buffer[:])
	if err != nil || n == 0 {
		return n, err
	}
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

// write passes on what has been read.
func (l *Loop) write(w *direction) (blocked bool, err error) {
	for w.piped > 0 || len(w.rest) > 0 {
		if !w.dst.open {
			return true, nil
		}
		var n int
		if w.piped > 0 {
			n, err = splice(w.pipe.r, w.dst.fd, w.piped)
			w.piped -= max(n, 0)
		} else {
			n, err = unix.Write(w.dst.fd, w.rest)
			w.rest = w.rest[max(n, 0):]
		}
		switch {
		case err == unix.EAGAIN:
			w.dst.open = false
		case err != nil && err != unix.EINTR:
			return false, err
		}
	}
	w.rest = nil
	return false, nil
}
