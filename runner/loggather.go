package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// A program that writes much in small pieces would wake its supervisor for each of them, and
// a supervisor that keeps pace costs more than the program. So a stream that has just been
// emptied is left alone for a moment, while it hurries: then more lies in the pipe at once.
const (
	gatherTime = 100 * time.Microsecond // how long it is left alone
	hurry      = 4 * gatherTime         // and for what comes sooner after what was before
	ample      = 32 << 10               // bytes at once of which no more need to come together
)

// While much is written the pipe holds more, so that the writer need not wait either. A user may
// have 64 MB of pipes (pipe-user-pages-soft), so it is made small again: with what comes first after
// a silence, and when nobody reads it for now. What then still has more in it is tried again.
const (
	usualPipe = 64 << 10
	widePipe  = 256 << 10
	flood     = 1 << 20 // bytes without a silence
	silence   = 100 * time.Millisecond
)

// gathering is how quickly a stream comes.
type gathering struct {
	taken time.Duration // the time of the last batch
	since int           // bytes since the last silence
	size  int           // what the pipe was made to hold, or is found to; or 0
}

// after notes n bytes that were taken at a time, and says for how long to leave the stream
// alone and, unless it is 0, how much the pipe is to hold from now on.
func (g *gathering) after(n int, at time.Duration) (alone time.Duration, hold int) {
	pause := at - g.taken
	g.taken = at
	if pause >= silence {
		g.since = 0
		hold = g.narrow()
	}
	if g.since += n; g.since >= flood && g.size != widePipe {
		g.since = 0 // where it is refused it is tried again after as much
		g.size, hold = widePipe, widePipe
	}
	if pause < hurry && n < ample {
		alone = gatherTime
	}
	return alone, hold
}

// narrow is for a stream that is silent: what its pipe is to hold, or 0.
func (g *gathering) narrow() int {
	if g.size != widePipe {
		return 0
	}
	g.size = usualPipe
	return usualPipe
}

// gather notes n bytes that were taken from a stream at l.last. The caller holds mu.
func (l *logFile) gather(s *stream, fd uintptr, n int) {
	alone, hold := s.gathering.after(n, time.Duration(l.last))
	s.alone = alone
	s.hold(fd, hold)
}

// hold has the pipe hold so much; 0 is as much as it does.
func (s *stream) hold(fd uintptr, size int) {
	if size == 0 {
		return
	}
	_, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
	switch {
	case err == nil:
	case size == widePipe: // the user has as many as he may
		s.gathering.size = 0
	default: // it has more in it than that
		s.gathering.size = widePipe
	}
}

// measure is for a pipe that somebody else may have made wide.
func (s *stream) measure() {
	raw, err := s.pipe.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { // without an answer it counts as usual
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				s.gathering.size = n
			}
		})
	}
}

// leave lets more come together. Less than a millisecond is too short for Go's timers.
func (s *stream) leave() {
	if s.alone > 0 {
		t := unix.NsecToTimespec(int64(s.alone))
		s.alone = 0
		_ = unix.Nanosleep(&t, nil) // cut short it is as good
	}
}
