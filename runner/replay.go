package runner

import (
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/crilog"
)

// errEnded is for who comes when a container has ended and all it wrote is in its log.
var errEnded = errors.New("it has ended")

// enterFromStart is audience.enter for a client that hears what was written before, too. Nothing
// is heard by anybody while that is read, so that each byte comes once.
func (l *logFile) enterFromStart(a *audience, s *seat) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errEnded // the log has no end that a pipe has
	if !a.isOver() {
		err = l.replay(s.hear)
	}
	if err != nil {
		s.close()
		return err
	}
	a.enter(s)
	return nil
}

// replay has hear told what was written so far, as it was: what is in the file, and what is
// still in the pipes and was passed to hear. The caller holds mu.
func (l *logFile) replay(hear func(stream string, b []byte)) error {
	again := &retelling{hear: hear, text: map[string][]byte{}}
	if err := crilog.Read(l.place.dir, l.place.attempt, crilog.All, again); err != nil {
		return fmt.Errorf("show what was written before: %w", err)
	}
	for _, s := range l.streams {
		if s.heard == 0 || s.ended {
			continue
		}
		raw, err := s.pipe.SyscallConn()
		if err != nil {
			return fmt.Errorf("show what was written before: %w", err)
		}
		var failed error
		err = raw.Control(func(fd uintptr) {
			var b []byte
			b, failed = l.look(fd)
			hear(s.name, b[:min(s.heard, len(b))])
			l.giveBack()
		})
		if err = errors.Join(err, failed); err != nil {
			return fmt.Errorf("show what was written before: %w", err)
		}
	}
	return nil
}

// retelling is a crilog.Sink that makes of entries what was written.
type retelling struct {
	hear func(stream string, b []byte)
	text map[string][]byte // not yet told, by stream
}

func (r *retelling) Entry(e crilog.Entry) error {
	b := append(r.text[e.Stream], e.Text...)
	if !e.Partial {
		b = append(b, '\n')
	}
	if len(b) >= maxPeek {
		r.hear(e.Stream, b)
		b = b[:0]
	}
	r.text[e.Stream] = b
	return nil
}

func (r *retelling) Flush() error {
	for stream, b := range r.text {
		r.hear(stream, b)
	}
	clear(r.text)
	return nil
}
