package crilog

import (
	"bytes"
	"io"
	"time"
)

// sinceSink drops lines that began before a time. It checks each line, because the clock may have
// been set back in between.
type sinceSink struct {
	Sink
	from time.Time
	text []byte        // from, as FormatTime writes it
	in   [2]lineInside // of stdout and of stderr
}

// lineInside says in the middle of which line a stream is.
type lineInside struct{ dropped, passed bool }

func since(from time.Time, sink Sink) Sink {
	if from.IsZero() {
		return sink
	}
	return &sinceSink{Sink: sink, from: from, text: FormatTime(from)}
}

func (s *sinceSink) Entry(e Entry) error {
	in := &s.in[0]
	if e.Stream == "stderr" {
		in = &s.in[1]
	}
	drop := in.dropped || !in.passed && s.isBefore(e.Time)
	in.dropped, in.passed = drop && e.Partial, !drop && e.Partial
	if drop {
		return nil
	}
	return s.Sink.Entry(e)
}

// isBefore reports whether the time of an entry is before from.
func (s *sinceSink) isBefore(stamp []byte) bool {
	if len(stamp) == len(s.text) && stamp[len(stamp)-1] == 'Z' {
		return bytes.Compare(stamp, s.text) < 0
	}
	moment, err := time.Parse(time.RFC3339Nano, string(stamp))
	return err == nil && moment.Before(s.from)
}

// lastLines returns the position at which the last n lines of a log of size bytes begin. A line is
// what a program ended with a newline, so the entries into which a long one was split count once.
func lastLines(log io.ReaderAt, size int64, n int) (int64, error) {
	if n == 0 {
		return size, nil
	}
	const block = 64 << 10
	var window []byte // the log from position pos on, as far as it is not counted yet
	pos, start, count := size, size, 0
	for pos > 0 {
		step := min(pos, block)
		pos -= step
		buf := make([]byte, step, int(step)+len(window))
		if _, err := log.ReadAt(buf, pos); err != nil {
			return 0, err
		}
		window = append(buf, window...)
		for {
			// The last newline ends the last line; the one before it precedes its beginning.
			begin := bytes.LastIndexByte(trimNewline(window), '\n') + 1
			if begin == 0 && pos > 0 {
				break // it begins in an earlier block
			}
			line := window[begin:]
			if len(line) == 0 {
				break
			}
			if e, err := parse(trimNewline(line)); err != nil || !e.Partial || start == size {
				if count == n {
					return start, nil
				}
				count++
			}
			start = pos + int64(begin)
			window = window[:begin]
		}
	}
	return 0, nil
}

func trimNewline(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }
