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
	skip map[string]bool // by stream: in the middle of a dropped line
	open map[string]bool // by stream: in the middle of a passed line
}

func since(from time.Time, sink Sink) Sink {
	if from.IsZero() {
		return sink
	}
	return &sinceSink{Sink: sink, from: from, skip: map[string]bool{}, open: map[string]bool{}}
}

func (s *sinceSink) Entry(e Entry) error {
	skip := s.skip[e.Stream]
	if !skip && !s.open[e.Stream] {
		moment, err := time.Parse(time.RFC3339Nano, string(e.Time))
		skip = err == nil && moment.Before(s.from)
	}
	s.skip[e.Stream], s.open[e.Stream] = skip && e.Partial, !skip && e.Partial
	if skip {
		return nil
	}
	return s.Sink.Entry(e)
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
