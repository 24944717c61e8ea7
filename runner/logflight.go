package runner

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
)

// flight is what a supervisor is about to write to a log, noted before it does, in
// memory that outlives the process. The bytes themselves are in the container's pipe
// until the entries are in the file, so that after a kill each of them is in one of
// three states: only in the pipe, in both, or only in the file. The note and the two
// tell which: the successor can make the same entries again, sees how much of them is
// in the file, and completes them. That they were taken from the pipe the kernel notes, in
// the call that takes them: the pipe may hold the same text again by then.
type flight struct {
	attempt int
	page    []byte // mapped
}

// The layout of the page. The length is written last and cleared first: with 0 there
// is nothing under way.
const (
	flightLength  = 0
	flightTime    = 8
	flightSegment = 16
	flightOffset  = 24
	flightAttempt = 32
	flightStream  = 40 // 1: stdout, 2: stderr
	flightFirst   = 48 // the first byte
	flightTaken   = 49 // the same once the bytes were taken from the pipe: it is read to here
	flightSize    = 64
)

func openFlight(path string, attempt int) (*flight, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open note of the log: %w", err)
	}
	defer f.Close()
	// Written, not only made larger: a page that is not there when memory is short
	// would end the supervisor when it is touched.
	if st, err := f.Stat(); err == nil && st.Size() < flightSize {
		if _, err := f.WriteAt(make([]byte, flightSize), 0); err != nil {
			return nil, fmt.Errorf("make note of the log: %w", err)
		}
	}
	page, err := unix.Mmap(int(f.Fd()), 0, flightSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map note of the log: %w", err)
	}
	return &flight{attempt: attempt, page: page}, nil
}

func (f *flight) close() {
	unix.Munmap(f.page)
	f.page = nil
}

func (f *flight) set(field int, v int64) { binary.NativeEndian.PutUint64(f.page[field:], uint64(v)) }
func (f *flight) get(field int) int64    { return int64(binary.NativeEndian.Uint64(f.page[field:])) }

func (f *flight) begin(w *crilog.Writer, stream string, at int64, b []byte) {
	segment, offset := w.Position()
	f.set(flightTime, at)
	f.set(flightSegment, int64(segment))
	f.set(flightOffset, offset)
	f.set(flightAttempt, int64(f.attempt))
	f.set(flightStream, streamNumber(stream))
	f.page[flightFirst], f.page[flightTaken] = b[0], ^b[0]
	f.set(flightLength, int64(len(b)))
}

// taken says whether the bytes were taken from the pipe: then all is in the file.
func (f *flight) taken() bool { return f.page[flightTaken] == f.page[flightFirst] }

func (f *flight) end() { f.set(flightLength, 0) }

func streamNumber(name string) int64 {
	if name == "stdout" {
		return 1
	}
	return 2
}

// settle finishes what the supervisor before this one had under way.
func (l *logFile) settle(streams []*stream) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.flight
	if n := int(f.get(flightLength)); n > 0 && n <= maxPeek && f.get(flightAttempt) == int64(f.attempt) {
		l.last = f.get(flightTime)
		for _, s := range streams {
			if streamNumber(s.name) == f.get(flightStream) {
				if err := l.land(s, n); err != nil {
					return err
				}
			}
		}
	}
	f.end()
	// Somebody else's half of an entry, whose other half is gone.
	return l.file.CompletePartial()
}

// land brings n bytes of a stream to the file that may be there, in part or whole.
func (l *logFile) land(s *stream, n int) error {
	if l.flight.taken() {
		return nil
	}
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return fmt.Errorf("take up %s: %w", s.name, err)
	}
	there, err := l.file.After(int(l.flight.get(flightSegment)), l.flight.get(flightOffset))
	if err != nil {
		return err
	}
	var failed error
	defer l.giveBack()
	err = raw.Control(func(fd uintptr) {
		b, err := l.look(fd)
		if err != nil || len(b) < n {
			return // the container has read them itself
		}
		if out := entries(nil, s.name, l.flight.get(flightTime), b[:n]); bytes.HasPrefix(out, there) {
			l.write(out[len(there):])
			s.rest = append(s.rest, b[:n]...)
			failed = l.discard(fd, n)
		}
	})
	if err != nil {
		return fmt.Errorf("take up %s: %w", s.name, err)
	}
	return failed
}
