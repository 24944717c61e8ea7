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

// maxBatch is the most that is read from a pipe at once: the default capacity of a pipe.
const maxBatch = 64 << 10

// peekBuffer holds the data of one batch. Logs borrow buffers from a pool, because most logs are silent most of
// the time.
type peekBuffer struct {
	in  [maxBatch]byte // the data in the pipe
	out []byte         // its log entries
}

var peekBuffers = sync.Pool{New: func() any { return new(peekBuffer) }}

// releaseBuffer returns the buffer to the pool.
func (l *Log) releaseBuffer() {
	if l.buf != nil {
		peekBuffers.Put(l.buf)
		l.buf = nil
	}
}

// lineTimeout is how long the rest of a line may take until the beginning becomes an entry of its own: a
// prompt must become visible, and a line that a program writes in two pieces should be one entry.
const lineTimeout = 50 * time.Millisecond

// TypingTimeout is the lineTimeout of a terminal: people type slowly, and what they type is one line.
const TypingTimeout = time.Second

// copy copies a stream to the file until it ends or the copying is suspended.
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
			if l.isSuspended(s) {
				return
			}
			err = nil // the rest of a line did not come in time
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

// isSuspended reports whether a stream must not be read now. If it may be read, it clears the read deadline.
func (l *Log) isSuspended(s *Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.suspended {
		s.Pipe.SetReadDeadline(time.Time{})
	}
	return l.suspended
}

// copyBatch logs the data in the stream. more is false if the caller has to wait: until the container writes, or,
// after the beginning of a line, until the line timeout.
func (l *Log) copyBatch(s *Stream, fd uintptr) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suspended {
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
	if lines, marked := l.markMissing(s.Name); marked && l.onMissing != nil {
		go l.onMissing(lines, l.lossErr)
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

// partialLine returns how much of a line without a newline is to be logged now.
func (l *Log) partialLine(s *Stream, fd uintptr, b []byte) int {
	now := time.Now()
	if s.lineDeadline.IsZero() {
		s.lineDeadline = now.Add(l.LineTimeout)
	}
	if all, err := buffered(fd); err != nil || l.noWriters || all > len(b) || !now.Before(s.lineDeadline) {
		return len(b) // the pipe holds more than the buffer, or the time is over
	}
	s.Pipe.SetReadDeadline(s.lineDeadline)
	return 0
}

// peek returns what is in a pipe without removing it. The result is valid until releaseBuffer.
func (l *Log) peek(fd uintptr) ([]byte, error) {
	n, err := retryEINTR(func() (int64, error) {
		n, err := unix.Tee(int(fd), l.peekPipe[1], maxBatch, unix.SPLICE_F_NONBLOCK)
		return int64(int(n)), err // on 32 bits x/sys fills the upper half from an unrelated register
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

// discard removes n bytes, which peek has returned, from a pipe: see inFlight.
func (l *Log) discard(fd uintptr, n int) error {
	for first := l.inFlight.page[inFlightTaken:][:1]; n > 0; first = nil {
		m, err := retryEINTR(func() (int64, error) {
			m, err := unix.Readv(int(fd), [][]byte{first, l.buf.in[:n-len(first)]})
			return int64(m), err
		})
		if errors.Is(err, unix.EAGAIN) || err == nil && m == 0 { // the container has read its own pipe
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

// completeLines returns how much of b consists of whole lines, or of pieces of maxLine bytes.
func completeLines(b []byte) int {
	n := bytes.LastIndexByte(b, '\n') + 1
	return n + (len(b)-n)/maxLine*maxLine
}

// formatEntries appends b's lines, and pieces of lines, to out in the format of the file. The result
// depends only on the arguments: see inFlight.
func formatEntries(out []byte, stream string, nanos int64, b []byte) []byte {
	when := crilog.FormatTime(time.Unix(0, nanos))
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

// forwardLines passes the whole lines of what was logged to onLines, and keeps the rest.
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

// forwardRest passes on a last line without a newline.
func (l *Log) forwardRest(s *Stream) {
	if len(s.Rest) > 0 {
		l.onLines(append(s.Rest, '\n'))
		s.Rest = nil
	}
}

// A program that writes much in small pieces would wake its supervisor for each piece, and a supervisor that
// keeps up costs more than the program. So during a burst the supervisor waits for a moment after it has emptied
// a stream: then the pipe holds more at once.
const (
	batchDelay = 100 * time.Microsecond // how long the supervisor waits
	burstGap   = 4 * batchDelay         // a burst continues if data follows within this time
	largeBatch = 32 << 10               // a batch of at least this many bytes needs no delay
)

// While much is written the pipe is made larger, so that the writer does not wait either. The pipes of a user may
// have 64 MB together (pipe-user-pages-soft), so the pipe is made small again at the first data after a silence,
// and when reading is suspended. A fuller pipe is made small later.
const (
	defaultPipeSize = 64 << 10
	largePipeSize   = 256 << 10
	largePipeAfter  = 1 << 20 // bytes without a silence
	quietTime       = 100 * time.Millisecond
)

// batching measures how fast data arrives on a stream.
type batching struct {
	lastBatch time.Duration // time of the last batch
	bytes     int           // bytes since the last silence
	pipeSize  int           // the size that was set for the pipe or was read from it; or 0
}

// next records a batch of n bytes. delay is how long not to read the stream; size, unless 0, is the new
// size of the pipe.
func (g *batching) next(n int, moment time.Duration) (delay time.Duration, size int) {
	pause := moment - g.lastBatch
	g.lastBatch = moment
	if pause >= quietTime {
		g.bytes = 0
		size = g.narrow()
	}
	if g.bytes += n; g.bytes >= largePipeAfter && g.pipeSize != largePipeSize {
		g.bytes = 0 // if the kernel refuses, it is tried again after as many bytes
		g.pipeSize, size = largePipeSize, largePipeSize
	}
	if pause < burstGap && n < largeBatch {
		delay = batchDelay
	}
	return delay, size
}

// narrow returns the new size of the pipe of a silent stream, or 0.
func (g *batching) narrow() int {
	if g.pipeSize != largePipeSize {
		return 0
	}
	g.pipeSize = defaultPipeSize
	return defaultPipeSize
}

// throttle records n bytes that were read from a stream at l.last. The caller holds mu.
func (l *Log) throttle(s *Stream, fd uintptr, n int) {
	delay, size := s.batching.next(n, time.Duration(l.lastTime))
	s.delay = delay
	s.setPipeSize(fd, size)
}

// setPipeSize sets the size of the pipe; 0 changes nothing.
func (s *Stream) setPipeSize(fd uintptr, size int) {
	if size == 0 {
		return
	}
	_, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
	switch {
	case err == nil:
	case size == largePipeSize: // the user's pipes have reached the limit
		s.batching.pipeSize = 0
	default: // it holds more data than that
		s.batching.pipeSize = largePipeSize
	}
}

// readPipeSize reads the size of a pipe that an earlier supervisor may have made larger.
func (s *Stream) readPipeSize() {
	raw, err := s.Pipe.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { // on an error it counts as the default size
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				s.batching.pipeSize = n
			}
		})
	}
}

// sleep lets more data collect. Less than a millisecond is too short for Go's timers.
func (s *Stream) sleep() {
	if s.delay > 0 {
		t := unix.NsecToTimespec(int64(s.delay))
		s.delay = 0
		_ = unix.Nanosleep(&t, nil) // an interrupted sleep is fine
	}
}
