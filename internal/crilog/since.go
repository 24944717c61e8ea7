package crilog

import "time"

// sinceSink leaves out lines that began before a time. The clock may have been set
// back in between, so each is looked at.
type sinceSink struct {
	Sink
	from time.Time
	skip map[string]bool // by stream: in the middle of a line that is left out
	open map[string]bool // by stream: in the middle of one that is shown
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
		at, err := time.Parse(time.RFC3339Nano, string(e.Time))
		skip = err == nil && at.Before(s.from)
	}
	s.skip[e.Stream], s.open[e.Stream] = skip && e.Partial, !skip && e.Partial
	if skip {
		return nil
	}
	return s.Sink.Entry(e)
}
