package relay

import (
	"errors"
	"io"
	"time"
)

// Meet is Carry once b, which is connecting, is connected. If it is refused, or not answered
// in time, or a is reset meanwhile, both are reset. end resets both, at any time.
func (l *Loop) Meet(a, b int, patience time.Duration, over func()) (end func()) {
	j := l.join(a, b, over)
	j.ends[1].wide = true
	if !j.early() || !j.watch() || j.begun {
		return j.broken
	}
	l.meeting[j] = time.Now().Add(patience)
	if !l.patient {
		l.patient = true
		l.Tick(l.giveUp)
	}
	return j.broken
}

// early passes on at once what a has said, which is half of what many connections are for. Who is on
// this machine has answered by now. False: it has failed.
func (j *joint) early() bool {
	w := &j.ways[0]
	w.src.ready = true
	_, err := j.loop.move(w)
	j.begun = w.wrote
	if err != nil && !errors.Is(err, io.EOF) { // of its end it is told again
		j.broken()
		return false
	}
	return true
}

// giveUp resets those whose patience has come to an end, and says whether there are others.
func (l *Loop) giveUp() bool {
	now := time.Now()
	for j, until := range l.meeting {
		if now.After(until) {
			j.broken()
		}
	}
	l.patient = len(l.meeting) > 0
	return l.patient
}
