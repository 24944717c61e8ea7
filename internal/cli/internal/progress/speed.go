package progress

import (
	"fmt"
	"time"
)

// speed is the recent speed of a transfer.
type speed struct {
	samples []sample // of the last few seconds; the first is the oldest
}

type sample struct {
	at   time.Time
	done int64
}

// speedWindow is the averaging period: long enough to be steady, short enough to follow changes.
const speedWindow = 5 * time.Second

// add records how much is transferred by now. A restart of the transfer discards the samples.
func (s *speed) add(now time.Time, done int64) {
	if n := len(s.samples); n > 0 && s.samples[n-1].done > done {
		s.samples = nil
	}
	s.samples = append(s.samples, sample{now, done})
	for len(s.samples) > 2 && now.Sub(s.samples[1].at) >= speedWindow {
		s.samples = s.samples[1:]
	}
	if len(s.samples) > 100 { // keep every second one
		kept := s.samples[:0]
		for i := 0; i < len(s.samples); i += 2 {
			kept = append(kept, s.samples[i])
		}
		s.samples = kept
	}
}

// perSecond returns the speed in bytes, or 0 while it is unknown.
func (s *speed) perSecond() float64 {
	if len(s.samples) < 2 {
		return 0
	}
	first, last := s.samples[0], s.samples[len(s.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took < 0.2 {
		return 0
	}
	return float64(last.done-first.done) / took
}

// text returns " 3.1 MB/s 11s" with the time for the remaining left bytes, or without it if left is -1
// for unknown; "" while the speed is unknown.
func (s *speed) text(left int64) string {
	v := s.perSecond()
	if v <= 0 {
		return ""
	}
	text := " " + Size(int64(v)) + "/s"
	if left > 0 {
		text += " " + eta(time.Duration(float64(left)/v*float64(time.Second)))
	}
	return text
}

// eta formats a waiting time: 5s, 2m05s, 3h10m.
func eta(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, time.Second)/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d/time.Minute), int(d%time.Minute/time.Second))
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d/time.Hour), int(d%time.Hour/time.Minute))
	}
	return "days"
}
