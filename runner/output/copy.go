package output

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

// maxBatch is as much as is taken from a pipe at once: what one holds.
const maxBatch = 64 << 10

// peekBuffer is what passes through a log at a time. Logs borrow it: most are silent mostly.
type peekBuffer struct {
	in  [maxBatch]byte // what was looked at
	out []byte         // and what is made of it
}

var peekBuffers = sync.Pool{New: func() any { return new(peekBuffer) }}

// releaseBuffer ends the use of what was looked at.
func (l *Log) releaseBuffer() {
	if l.buf != nil {
		peekBuffers.Put(l.buf)
		l.buf = nil
	}
}

// lineTimeout is how long the rest of a line may take to come, before what there is of
// it becomes an entry: a prompt must be seen, and a line that a program writes in two
// pieces should be one.
const lineTimeout = 50 * time.Millisecond

// TypingTimeout is lineTimeout of a terminal: what a person types comes slowly, and is one line.
const TypingTimeout = time.Second

// copy brings a stream to the file until it ends or the copying is paused.
func (l *Log) copy(s *Stream) {
	raw, err := s.Pipe.SyscallConn()
	for err == nil && !s.Ended {
		var failed error
		err = raw.Read(func(fd uintptr) bool {
			var more bool
			more, failed = l.copyBatch(s, fd)
			return failed != nil || s.Ended || more
		})
		l.forwardLines(s)
		s.sleep()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if l.isPaused(s) {
				return
			}
			err = nil // the rest of a line did not come
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "read %s of a container: %v\n", s.Name, err)
		l.mu.Lock()
		s.Ended = true
		l.mu.Unlock()
	}
	l.forwardRest(s)
}

// isPaused says whether a stream is to be left alone, else it may be read again.
func (l *Log) isPaused(s *Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pausing {
		s.Pipe.SetReadDeadline(time.Time{})
	}
	return l.pausing
}

// copyBatch logs what is in the stream. more is false when there is nothing to be done
// before something is written or, if a line has begun, a time has passed.
func (l *Log) copyBatch(s *Stream, fd uintptr) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pausing {
		return false, nil
	}
	if l.noWriters && s.remaining <= 0 {
		s.Ended = true
		return false, nil
	}
	defer l.releaseBuffer()
	b, err := l.peek(fd)
	switch {
	case errors.Is(err, unix.EAGAIN):
		s.Ended = l.noWriters
		if len(s.Rest) == 0 {
			s.Rest = nil // it may be silent for long
		}
		return false, nil
	case err != nil:
		return false, err
	case len(b) == 0:
		s.Ended = true
		return false, nil
	}
	if l.noWriters && len(b) > s.remaining {
		b = b[:s.remaining]
	}
	if l.OnData != nil && s.delivered < len(b) {
		l.OnData(s.Name, b[s.delivered:])
	}
	s.delivered = len(b)
	n := completeLines(b)
	if n == 0 {
		if n = l.partialLine(s, fd, b); n == 0 {
			return false, nil
		}
	}
	if !s.lineDeadline.IsZero() {
		s.lineDeadline = time.Time{}
		s.Pipe.SetReadDeadline(time.Time{})
	}
	l.lastTime = max(time.Now().UnixNano(), l.lastTime+1)
	l.inFlight.begin(l.file, s.Name, l.lastTime, b[:n])
	l.buf.out = formatEntries(l.buf.out[:0], s.Name, l.lastTime, b[:n])
	l.write(l.buf.out)
	s.Rest = append(s.Rest, b[:n]...)
	s.remaining -= n
	s.delivered -= n
	err = l.discard(fd, n)
	l.inFlight.end()
	l.throttle(s, fd, n)
	return true, err
}

// partialLine is how much of a line without an end is to be logged as it is.
func (l *Log) partialLine(s *Stream, fd uintptr, b []byte) int {
	now := time.Now()
	if s.lineDeadline.IsZero() {
		s.lineDeadline = now.Add(l.LineTimeout)
	}
	if all, err := buffered(fd); err != nil || l.noWriters || all > len(b) || !now.Before(s.lineDeadline) {
		return len(b) // more was there than could be looked at, or it is time
	}
	s.Pipe.SetReadDeadline(s.lineDeadline)
	return 0
}

// peek reads what is in a pipe and leaves it there. What it returns is there until releaseBuffer.
func (l *Log) peek(fd uintptr) ([]byte, error) {
	n, err := retryEINTR(func() (int64, error) {
		n, err := unix.Tee(int(fd), l.peekPipe[1], maxBatch, unix.SPLICE_F_NONBLOCK)
		return int64(int(n)), err // on 32 bits x/sys puts a register that is not the answer into the upper half
	})
	if err != nil || n == 0 {
		return nil, err
	}
	if l.buf == nil {
		l.buf = peekBuffers.Get().(*peekBuffer)
	}
	for got := 0; got < int(n); {
		m, err := retryEINTR(func() (int64, error) {
			m, err := unix.Read(l.peekPipe[0], l.buf.in[got:n])
			return int64(m), err
		})
		if err != nil {
			return nil, fmt.Errorf("read copy of a pipe: %w", err)
		}
		got += int(m)
	}
	return l.buf.in[:n], nil
}

// discard takes n bytes, which have been looked at, from a pipe: see flight.
func (l *Log) discard(fd uintptr, n int) error {
	for first := l.inFlight.page[inFlightTaken:][:1]; n > 0; first = nil {
		m, err := retryEINTR(func() (int64, error) {
			m, err := unix.Readv(int(fd), [][]byte{first, l.buf.in[:n-len(first)]})
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

func retryEINTR(call func() (int64, error)) (int64, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// completeLines is how much of b is whole lines or pieces of the longest.
func completeLines(b []byte) int {
	n := bytes.LastIndexByte(b, '\n') + 1
	return n + (len(b)-n)/maxLine*maxLine
}

// formatEntries adds b's lines, and pieces of lines, to out in the form of the file. They
// follow from the arguments alone: see flight.
func formatEntries(out []byte, stream string, at int64, b []byte) []byte {
	when := crilog.FormatTime(time.Unix(0, at))
	head := crilog.Append(nil, when, stream, false, nil) // of every whole line
	head = head[:len(head)-1]
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if 0 <= end && end <= maxLine {
			out = append(append(out, head...), b[:end+1]...)
			b = b[end+1:]
			continue
		}
		text, rest := b, []byte(nil)
		if end >= 0 {
			text, rest = b[:end], b[end+1:]
		}
		for len(text) > maxLine || len(text) == maxLine && end < 0 {
			out = crilog.Append(out, when, stream, true, text[:maxLine])
			text = text[maxLine:]
		}
		if end >= 0 || len(text) > 0 {
			out = crilog.Append(out, when, stream, end < 0, text)
		}
		b = rest
	}
	return out
}

// forwardLines shows the lines among what has been logged, and keeps what is no whole line.
func (l *Log) forwardLines(s *Stream) {
	n := bytes.LastIndexByte(s.Rest, '\n') + 1
	if n > 0 {
		l.onLines(s.Rest[:n])
	}
	s.Rest = append(s.Rest[:0], s.Rest[n:]...)
	if len(s.Rest) >= maxLine {
		l.forwardRest(s)
	}
}

// forwardRest shows what was begun and never ended with a newline.
func (l *Log) forwardRest(s *Stream) {
	if len(s.Rest) > 0 {
		l.onLines(append(s.Rest, '\n'))
		s.Rest = nil
	}
}

// A program that writes much in small pieces would wake its supervisor for each of them, and
// a supervisor that keeps pace costs more than the program. So a stream that has just been
// emptied is left alone for a moment, while it hurries: then more lies in the pipe at once.
const (
	batchDelay = 100 * time.Microsecond // how long it is left alone
	burstGap   = 4 * batchDelay         // and for what comes sooner after what was before
	largeBatch = 32 << 10               // bytes at once of which no more need to come together
)

// While much is written the pipe holds more, so that the writer need not wait either. A user may
// have 64 MB of pipes (pipe-user-pages-soft), so it is made small again: with what comes first after
// a silence, and when nobody reads it for now. What then still has more in it is tried again.
const (
	defaultPipeSize = 64 << 10
	largePipeSize   = 256 << 10
	largePipeAfter  = 1 << 20 // bytes without a silence
	quietTime       = 100 * time.Millisecond
)

// batching is how quickly a stream comes.
type batching struct {
	lastBatch time.Duration // the time of the last batch
	bytes     int           // bytes since the last silence
	pipeSize  int           // what the pipe was made to hold, or is found to; or 0
}

// next notes n bytes that were taken at a time, and says for how long to leave the stream
// alone and, unless it is 0, how much the pipe is to hold from now on.
func (g *batching) next(n int, at time.Duration) (alone time.Duration, hold int) {
	pause := at - g.lastBatch
	g.lastBatch = at
	if pause >= quietTime {
		g.bytes = 0
		hold = g.narrow()
	}
	if g.bytes += n; g.bytes >= largePipeAfter && g.pipeSize != largePipeSize {
		g.bytes = 0 // where it is refused it is tried again after as much
		g.pipeSize, hold = largePipeSize, largePipeSize
	}
	if pause < burstGap && n < largeBatch {
		alone = batchDelay
	}
	return alone, hold
}

// narrow is for a stream that is silent: what its pipe is to hold, or 0.
func (g *batching) narrow() int {
	if g.pipeSize != largePipeSize {
		return 0
	}
	g.pipeSize = defaultPipeSize
	return defaultPipeSize
}

// throttle notes n bytes that were taken from a stream at l.last. The caller holds mu.
func (l *Log) throttle(s *Stream, fd uintptr, n int) {
	alone, hold := s.batching.next(n, time.Duration(l.lastTime))
	s.delay = alone
	s.setPipeSize(fd, hold)
}

// setPipeSize has the pipe hold so much; 0 is as much as it does.
func (s *Stream) setPipeSize(fd uintptr, size int) {
	if size == 0 {
		return
	}
	_, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
	switch {
	case err == nil:
	case size == largePipeSize: // the user has as many as he may
		s.batching.pipeSize = 0
	default: // it has more in it than that
		s.batching.pipeSize = largePipeSize
	}
}

// readPipeSize is for a pipe that somebody else may have made wide.
func (s *Stream) readPipeSize() {
	raw, err := s.Pipe.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { // without an answer it counts as usual
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				s.batching.pipeSize = n
			}
		})
	}
}

// sleep lets more come together. Less than a millisecond is too short for Go's timers.
func (s *Stream) sleep() {
	if s.delay > 0 {
		t := unix.NsecToTimespec(int64(s.delay))
		s.delay = 0
		_ = unix.Nanosleep(&t, nil) // cut short it is as good
	}
}
