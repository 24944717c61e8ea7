package crilog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Sink receives what is read. Flush means that there is nothing more for now. Entry returns ErrStop
// to stop.
type Sink interface {
	Entry(Entry) error
	Flush() error
}

// ErrStop ends the reading without an error.
var ErrStop = errors.New("no more is wanted")

// Selection selects the part of a log to read.
type Selection struct {
	Tail  int       // the last lines, so many; negative: all
	Since time.Time // of these, the lines written from then on; zero: all
}

// All selects everything.
var All = Selection{Tail: -1}

// Read passes the selected entries of one instance to sink.
func Read(dir string, attempt int, sel Selection, sink Sink) error {
	c, err := openTail(dir, attempt, sel)
	if err != nil {
		return err
	}
	defer c.close()
	chosen := since(sel.Since, sink)
	for i, f := range c.files {
		r := newReader(f, attempt, c.segments[i])
		if err = r.copy(chosen); err == nil {
			err = r.finish(chosen)
		}
		if err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, ErrStop) {
		return err
	}
	return sink.Flush()
}

// openTail opens an instance's log at the beginning of its last lines, and after the files that were written before
// sel.Since.
func openTail(dir string, attempt int, sel Selection) (*openLog, error) {
	c, err := openInstance(dir, attempt)
	if err != nil {
		return c, err
	}
	c.closeBefore(sel.Since)
	if sel.Tail < 0 {
		return c, nil
	}
	pos, err := lastLines(c, c.size(), sel.Tail)
	if err == nil {
		err = c.seek(pos)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("find the end of the log: %w", err)
	}
	return c, nil
}

// reader reads one segment of an instance's log, which may still grow.
type reader struct {
	segmentFile
	f    *os.File
	in   *bufio.Reader
	head []byte // the beginning of an incomplete line
}

func newReader(f *os.File, attempt, segment int) *reader {
	return &reader{segmentFile: segmentFile{attempt, segment}, f: f, in: bufio.NewReaderSize(f, 64<<10)}
}

func (r *reader) close() { r.f.Close() }

// copy passes on every entry that is complete.
func (r *reader) copy(sink Sink) error {
	for {
		line, err := r.in.ReadSlice('\n')
		switch {
		case err == nil:
			if len(r.head) > 0 {
				r.head = append(r.head, line...)
				line = r.head
			}
			if err := sink.Entry(parseLenient(line[:len(line)-1])); err != nil {
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

// finish passes on a last entry without a newline, which a killed writer leaves. It drops a line
// that is no valid entry.
func (r *reader) finish(sink Sink) error {
	e, err := parse(r.head)
	r.head = nil
	if err != nil {
		return nil
	}
	e.Partial = true
	return sink.Entry(e)
}

// parseLenient returns an invalid line as text: better odd than lost.
func parseLenient(line []byte) Entry {
	e, err := parse(line)
	if err != nil {
		return Entry{Stream: "stdout", Text: line}
	}
	return e
}
