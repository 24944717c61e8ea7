package output

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
)

// inFlight is what a supervisor is about to write to a log, noted before it does, in
// memory that outlives the process. The bytes themselves are in the container's pipe
// until the entries are in the file, so that after a kill each of them is in one of
// three states: only in the pipe, in both, or only in the file. The note and the two
// tell which: the successor can make the same entries again, sees how much of them is
// in the file, and completes them. That they were taken from the pipe the kernel notes, in
// the call that takes them: the pipe may hold the same text again by then.
type inFlight struct {
	attempt int
	page    []byte // mapped
}

// The layout of the page. The length is written last and cleared first: with 0 there
// is nothing under way.
const (
	inFlightLength  = 0
	inFlightTime    = 8
	inFlightSegment = 16
	inFlightOffset  = 24
	inFlightAttempt = 32
	inFlightStream  = 40 // 1: stdout, 2: stderr
	inFlightFirst   = 48 // the first byte
	inFlightTaken   = 49 // the same once the bytes were taken from the pipe: it is read to here
	inFlightSize    = 64
)

func openInFlight(path string, attempt int) (*inFlight, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open note of the log: %w", err)
	}
	defer f.Close()
	// Written, not only made larger: a page that is not there when memory is short
	// would end the supervisor when it is touched.
	if st, err := f.Stat(); err == nil && st.Size() < inFlightSize {
		if _, err := f.WriteAt(make([]byte, inFlightSize), 0); err != nil {
			return nil, fmt.Errorf("make note of the log: %w", err)
		}
	}
	page, err := unix.Mmap(int(f.Fd()), 0, inFlightSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map note of the log: %w", err)
	}
	return &inFlight{attempt: attempt, page: page}, nil
}

func (f *inFlight) close() {
	unix.Munmap(f.page)
	f.page = nil
}

func (f *inFlight) set(field int, v int64) { binary.NativeEndian.PutUint64(f.page[field:], uint64(v)) }
func (f *inFlight) get(field int) int64    { return int64(binary.NativeEndian.Uint64(f.page[field:])) }

func (f *inFlight) begin(w *crilog.Writer, stream string, at int64, b []byte) {
	segment, offset := w.Position()
	f.set(inFlightTime, at)
	f.set(inFlightSegment, int64(segment))
	f.set(inFlightOffset, offset)
	f.set(inFlightAttempt, int64(f.attempt))
	f.set(inFlightStream, streamNumber(stream))
	f.page[inFlightFirst], f.page[inFlightTaken] = b[0], ^b[0]
	f.set(inFlightLength, int64(len(b)))
}

// taken says whether the bytes were taken from the pipe: then all is in the file.
func (f *inFlight) taken() bool { return f.page[inFlightTaken] == f.page[inFlightFirst] }

func (f *inFlight) end() { f.set(inFlightLength, 0) }

func streamNumber(name string) int64 {
	if name == "stdout" {
		return 1
	}
	return 2
}

// recoverInFlight finishes what the supervisor before this one had under way.
func (l *Log) recoverInFlight(streams []*Stream) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.inFlight
	if n := int(f.get(inFlightLength)); n > 0 && n <= maxBatch && f.get(inFlightAttempt) == int64(f.attempt) {
		l.lastTime = f.get(inFlightTime)
		for _, s := range streams {
			if streamNumber(s.Name) == f.get(inFlightStream) {
				if err := l.recoverBatch(s, n); err != nil {
					return err
				}
			}
		}
	}
	f.end()
	// Somebody else's half of an entry, whose other half is gone.
	return l.file.CompletePartial()
}

// recoverBatch brings n bytes of a stream to the file that may be there, in part or whole.
func (l *Log) recoverBatch(s *Stream, n int) error {
	if l.inFlight.taken() {
		return nil
	}
	raw, err := s.Pipe.SyscallConn()
	if err != nil {
		return fmt.Errorf("recover %s: %w", s.Name, err)
	}
	there, err := l.file.After(int(l.inFlight.get(inFlightSegment)), l.inFlight.get(inFlightOffset))
	if err != nil {
		return err
	}
	var failed error
	defer l.releaseBuffer()
	err = raw.Control(func(fd uintptr) {
		b, err := l.peek(fd)
		if err != nil || len(b) < n {
			return // the container has read them itself
		}
		if out := formatEntries(nil, s.Name, l.inFlight.get(inFlightTime), b[:n]); bytes.HasPrefix(out, there) {
			l.write(out[len(there):])
			s.Rest = append(s.Rest, b[:n]...)
			failed = l.discard(fd, n)
		}
	})
	if err != nil {
		return fmt.Errorf("recover %s: %w", s.Name, err)
	}
	return failed
}
