package crilog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Sink takes what is read. Flush says that there is nothing more for now.
type Sink interface {
	Entry(Entry) error
	Flush() error
}

// Read hands the entries of one instance to sink: all, or with tail >= 0 those of
// the last tail lines.
func Read(dir string, attempt, tail int, sink Sink) error {
	r, err := open(dir, attempt, tail)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.copy(sink); err != nil {
		return err
	}
	if err := r.finish(sink); err != nil {
		return err
	}
	return sink.Flush()
}

// reader reads the log of one instance, which may still grow.
type reader struct {
	attempt int
	f       *os.File
	in      *bufio.Reader
	head    []byte // the beginning of a line that is not all there yet
}

func open(dir string, attempt, tail int) (*reader, error) {
	f, err := os.Open(filepath.Join(dir, strconv.Itoa(attempt)+".log"))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if tail >= 0 {
		if err := seekTail(f, tail); err != nil {
			f.Close()
			return nil, fmt.Errorf("find the end of the log: %w", err)
		}
	}
	return &reader{attempt: attempt, f: f, in: bufio.NewReaderSize(f, 64<<10)}, nil
}

func (r *reader) close() { r.f.Close() }

// copy hands on every entry that is complete by now.
func (r *reader) copy(sink Sink) error {
	for {
		line, err := r.in.ReadSlice('\n')
		switch {
		case err == nil:
			if len(r.head) > 0 {
				r.head = append(r.head, line...)
				line = r.head
			}
			if err := sink.Entry(entry(line[:len(line)-1])); err != nil {
				return err
			}
			r.head = r.head[:0]
		case errors.Is(err, bufio.ErrBufferFull):
			r.head = append(r.head, line...)
		case errors.Is(err, io.EOF):
			r.head = append(r.head, line...)
			return nil
		default:
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// finish hands on a last entry without a newline: its writer was killed in the
// middle. One that is not even an entry is dropped.
func (r *reader) finish(sink Sink) error {
	e, err := Parse(r.head)
	r.head = nil
	if err != nil {
		return nil
	}
	e.Partial = true
	return sink.Entry(e)
}

// entry shows a line that is no entry as it is: better odd than lost.
func entry(line []byte) Entry {
	e, err := Parse(line)
	if err != nil {
		return Entry{Stream: "stdout", Text: line}
	}
	return e
}
