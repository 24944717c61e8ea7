package output

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
)

// inFlight is a record of the batch that a supervisor is about to write to a log. The record is written before
// the batch, in memory that outlives the process. The bytes stay in the container's pipe until the entries are in
// the file. So after a kill each byte is in one of three states: only in the pipe, in the pipe and the file, or
// only in the file. The record, the pipe and the file together show the state: the next supervisor makes the
// same entries again, finds out how much of them is in the file, and completes them. The call that removes the
// bytes from the pipe also writes the first of them into the record: the pipe's content alone could not prove the
// removal, because the same text may follow.
type inFlight struct {
	attempt int
	page    []byte // mapped
}

// The layout of the page. The length is written last and cleared first: 0 means that no batch is in flight.
const (
	inFlightLength  = 0
	inFlightTime    = 8
	inFlightSegment = 16
	inFlightOffset  = 24
	inFlightAttempt = 32
	inFlightStream  = 40 // 1: stdout, 2: stderr
	inFlightFirst   = 48 // the first byte of the batch
	inFlightTaken   = 49 // the same byte once the batch was removed from the pipe: read(2) stores it here
	inFlightMissing = 56 // no part of the batch: the number of lines that are missing in the log and not reported yet
	inFlightSize    = 64
)

func openInFlight(path string, attempt int) (*inFlight, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the in-flight record of the log: %w", err)
	}
	defer f.Close()
	// The page is written and not only allocated by truncate: if memory is short, touching a missing page
	// would kill the supervisor.
	if st, err := f.Stat(); err == nil && st.Size() < inFlightSize {
		if _, err := f.WriteAt(make([]byte, inFlightSize), 0); err != nil {
			return nil, fmt.Errorf("make the in-flight record of the log: %w", err)
		}
	}
	page, err := unix.Mmap(int(f.Fd()), 0, inFlightSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the in-flight record of the log: %w", err)
	}
	return &inFlight{attempt: attempt, page: page}, nil
}

func (f *inFlight) close() {
	unix.Munmap(f.page)
	f.page = nil
}

func (f *inFlight) set(field int, v int64) { binary.NativeEndian.PutUint64(f.page[field:], uint64(v)) }
func (f *inFlight) get(field int) int64    { return int64(binary.NativeEndian.Uint64(f.page[field:])) }

func (f *inFlight) begin(w *crilog.Writer, stream string, nanos int64, b []byte) {
	segment, offset := w.Position()
	f.set(inFlightTime, nanos)
	f.set(inFlightSegment, int64(segment))
	f.set(inFlightOffset, offset)
	f.set(inFlightAttempt, int64(f.attempt))
	f.set(inFlightStream, streamNumber(stream))
	f.page[inFlightFirst], f.page[inFlightTaken] = b[0], ^b[0]
	f.set(inFlightLength, int64(len(b)))
}

// taken reports whether the bytes were removed from the pipe: then all of them are in the file.
func (f *inFlight) taken() bool { return f.page[inFlightTaken] == f.page[inFlightFirst] }

func (f *inFlight) end() { f.set(inFlightLength, 0) }

func streamNumber(name string) int64 {
	if name == "stdout" {
		return 1
	}
	return 2
}

// recoverInFlight completes the batch that the previous supervisor had in flight.
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
	// The file may end in the beginning of an entry whose rest is lost.
	return l.file.CompletePartial()
}

// recoverBatch brings n bytes of a stream to the file, which may contain them already, in part or in whole.
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
			return // the container has read its own pipe
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
