package relay

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
)

// Carry passes on what two connections say until both have ended, closes both, and has
// over called. A reset of one side resets the other, and so does the end of the loop. Both
// must not block. On the loop's thread only. b may have been watched for Edges, and told is
// what has been told of it; its watcher is told no more.
func (l *Loop) Carry(a, b int, told uint32, over func()) {
	j := l.join(a, b, over)
	j.begun = true
	j.ends[1].wide = told != 0
	if j.watch() {
		j.ends[1].hear(told)
		j.goOn()
	}
}

// Answered says whether an attempt to connect has come to its end, and AnswerOf which.
func Answered(events uint32) bool { return events&(unix.EPOLLOUT|failure) != 0 }

// failure is told of every attempt that has failed.
const failure = unix.EPOLLERR | unix.EPOLLHUP

// AnswerOf is what has become of an attempt to connect of which these events were told.
func AnswerOf(fd int, events uint32) error {
	if events&failure == 0 {
		return nil
	}
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

// watch has both ends heard; else the joint is broken.
func (j *joint) watch() bool {
	for i := range j.ends {
		e := &j.ends[i]
		events := uint32(said)
		if e.wide {
			events = Edges
		}
		if j.loop.listen(e.fd, events, func(events uint32) { j.hear(e, events) }) != nil {
			j.broken()
			return false
		}
	}
	return true
}

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
	wide   bool // the loop tells when that changes, which is not asked for before it has to be
	failed bool // reading may say nothing of it, after an end
	last   bool // nothing follows what there is
	urgent bool // something in between ends a read too early
	empty  bool // it has been read to its end
}

// direction is half a joint.
type direction struct {
	src, dst   *end
	rest       []byte // that has been read and not been written
	bulk       bool   // it is a stream: what comes goes through pipe
	pipe       *pipe  // nil, or where piped bytes are
	piped      int
	wrote      bool // something
	prompt     bool // what is written does not wait for more (TCP_NODELAY)
	over       bool
	restrained bool // its sender
}

// hear is told of one end.
func (j *joint) hear(e *end, events uint32) {
	if j.ended {
		return
	}
	e.hear(events)
	if !j.begun {
		switch {
		case e.failed:
			j.broken()
			return
		case e != &j.ends[1] || !Answered(events):
			return
		}
		j.begun = true
		delete(j.loop.meeting, j)
	}
	if !j.queued { // else it has its turn next
		j.goOn()
	}
}

func (e *end) hear(events uint32) {
	const last = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	if events&(unix.EPOLLIN|unix.EPOLLPRI|last) != 0 {
		e.ready = true
		e.whole = e.whole || events&(last|unix.EPOLLPRI) != 0
	}
	if events&(unix.EPOLLOUT|last) != 0 {
		e.open = true
	}
	e.last = e.last || events&unix.EPOLLRDHUP != 0
	e.urgent = e.urgent || events&unix.EPOLLPRI != 0
	e.failed = e.failed || events&unix.EPOLLERR != 0
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
			if other := &j.ways[1-i]; w.src.failed || !other.over && brief.Shutdown(w.dst.fd, unix.SHUT_WR) != nil {
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
		j.close(brief.Close)
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
	delete(j.loop.meeting, j)
	if delete(j.loop.joints, j); len(j.loop.joints) == 0 {
		j.loop.spareNothing()
	}
	j.over()
}
