package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
)

// maxPeek is as much as is taken from a pipe at once: what one holds.
const maxPeek = 64 << 10

// passing is what passes through a log at a time. Logs borrow it: most are silent mostly.
type passing struct {
	in  [maxPeek]byte // what was looked at
	out []byte        // and what is made of it
}

var passings = sync.Pool{New: func() any { return new(passing) }}

// giveBack ends the use of what was looked at.
func (l *logFile) giveBack() {
	if l.held != nil {
		passings.Put(l.held)
		l.held = nil
	}
}

// lineWait is how long the rest of a line may take to come, before what there is of
// it becomes an entry: a prompt must be seen, and a line that a program writes in two
// pieces should be one.
const lineWait = 50 * time.Millisecond

// typingWait is lineWait of a terminal: what a person types comes slowly, and is one line.
const typingWait = time.Second

// copy brings a stream to the file until it ends or the copying is paused.
func (l *logFile) copy(s *stream) {
	raw, err := s.pipe.SyscallConn()
	for err == nil && !s.ended {
		var failed error
		err = raw.Read(func(fd uintptr) bool {
			var more bool
			more, failed = l.step(s, fd)
			return failed != nil || s.ended || more
		})
		l.shown(s)
		s.leave()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if l.paused(s) {
				return
			}
			err = nil // the rest of a line did not come
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "read %s of a container: %v\n", s.name, err)
		l.mu.Lock()
		s.ended = true
		l.mu.Unlock()
	}
	l.showRest(s)
}

// paused says whether a stream is to be left alone, else it may be read again.
func (l *logFile) paused(s *stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pausing {
		s.pipe.SetReadDeadline(time.Time{})
	}
	return l.pausing
}

// step logs what is in the stream. more is false when there is nothing to be done
// before something is written or, if a line has begun, a time has passed.
func (l *logFile) step(s *stream, fd uintptr) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pausing {
		return false, nil
	}
	if l.gone && s.last <= 0 {
		s.ended = true
		return false, nil
	}
	defer l.giveBack()
	b, err := l.look(fd)
	switch {
	case errors.Is(err, unix.EAGAIN):
		s.ended = l.gone
		if len(s.rest) == 0 {
			s.rest = nil // it may be silent for long
		}
		return false, nil
	case err != nil:
		return false, err
	case len(b) == 0:
		s.ended = true
		return false, nil
	}
	if l.gone && len(b) > s.last {
		b = b[:s.last]
	}
	if l.hear != nil && s.heard < len(b) {
		l.hear(s.name, b[s.heard:])
	}
	s.heard = len(b)
	n := whole(b)
	if n == 0 {
		if n = l.overdue(s, fd, b); n == 0 {
			return false, nil
		}
	}
	if !s.waiting.IsZero() {
		s.waiting = time.Time{}
		s.pipe.SetReadDeadline(time.Time{})
	}
	l.last = max(time.Now().UnixNano(), l.last+1)
	l.flight.begin(l.file, s.name, l.last, b[:n])
	l.held.out = entries(l.held.out[:0], s.name, l.last, b[:n])
	l.write(l.held.out)
	s.rest = append(s.rest, b[:n]...)
	s.last -= n
	s.heard -= n
	err = l.discard(fd, n)
	l.flight.end()
	l.gather(s, fd, n)
	return true, err
}

// overdue is how much of a line without an end is to be logged as it is.
func (l *logFile) overdue(s *stream, fd uintptr, b []byte) int {
	now := time.Now()
	if s.waiting.IsZero() {
		s.waiting = now.Add(l.patience)
	}
	if all, err := available(fd); err != nil || l.gone || all > len(b) || !now.Before(s.waiting) {
		return len(b) // more was there than could be looked at, or it is time
	}
	s.pipe.SetReadDeadline(s.waiting)
	return 0
}

// look reads what is in a pipe and leaves it there. What it returns is there until giveBack.
func (l *logFile) look(fd uintptr) ([]byte, error) {
	n, err := restarted(func() (int64, error) {
		n, err := unix.Tee(int(fd), l.peek[1], maxPeek, unix.SPLICE_F_NONBLOCK)
		return int64(int(n)), err // on 32 bits x/sys puts a register that is not the answer into the upper half
	})
	if err != nil || n == 0 {
		return nil, err
	}
	if l.held == nil {
		l.held = passings.Get().(*passing)
	}
	for got := 0; got < int(n); {
		m, err := restarted(func() (int64, error) {
			m, err := unix.Read(l.peek[0], l.held.in[got:n])
			return int64(m), err
		})
		if err != nil {
			return nil, fmt.Errorf("read copy of a pipe: %w", err)
		}
		got += int(m)
	}
	return l.held.in[:n], nil
}

// discard takes n bytes, which have been looked at, from a pipe: see flight.
func (l *logFile) discard(fd uintptr, n int) error {
	for first := l.flight.page[flightTaken:][:1]; n > 0; first = nil {
		m, err := restarted(func() (int64, error) {
			m, err := unix.Readv(int(fd), [][]byte{first, l.held.in[:n-len(first)]})
			return int64(m), err
		})
		if errors.Is(err, unix.EAGAIN) || err == nil && m == 0 { // the container has read it itself
			return nil
		}
		if err != nil {
			return fmt.Errorf("empty pipe: %w", err)
		}
		n -= int(m)
	}
	return nil
}

func restarted(call func() (int64, error)) (int64, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// whole is how much of b is whole lines or pieces of the longest.
func whole(b []byte) int {
	n := bytes.LastIndexByte(b, '\n') + 1
	return n + (len(b)-n)/maxLogLine*maxLogLine
}

// entries adds b's lines, and pieces of lines, to out in the form of the file. They
// follow from the arguments alone: see flight.
func entries(out []byte, stream string, at int64, b []byte) []byte {
	when := crilog.FormatTime(time.Unix(0, at))
	head := crilog.Append(nil, when, stream, false, nil) // of every whole line
	head = head[:len(head)-1]
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if 0 <= end && end <= maxLogLine {
			out = append(append(out, head...), b[:end+1]...)
			b = b[end+1:]
			continue
		}
		text, rest := b, []byte(nil)
		if end >= 0 {
			text, rest = b[:end], b[end+1:]
		}
		for len(text) > maxLogLine || len(text) == maxLogLine && end < 0 {
			out = crilog.Append(out, when, stream, true, text[:maxLogLine])
			text = text[maxLogLine:]
		}
		if end >= 0 || len(text) > 0 {
			out = crilog.Append(out, when, stream, end < 0, text)
		}
		b = rest
	}
	return out
}

// shown shows the lines among what has been logged, and keeps what is no whole line.
func (l *logFile) shown(s *stream) {
	n := bytes.LastIndexByte(s.rest, '\n') + 1
	if n > 0 {
		l.show(s.rest[:n])
	}
	s.rest = append(s.rest[:0], s.rest[n:]...)
	if len(s.rest) >= maxLogLine {
		l.showRest(s)
	}
}

// showRest shows what was begun and never ended with a newline.
func (l *logFile) showRest(s *stream) {
	if len(s.rest) > 0 {
		l.show(append(s.rest, '\n'))
		s.rest = nil
	}
}
