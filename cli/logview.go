package cli

import (
	"bufio"
	"bytes"
	"io"
	"sync"

	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
)

// maxJoined is how much of one line is kept in memory before it is shown in
// pieces: a program may never write a newline.
const maxJoined = 256 << 10

// logView is where the logs of several containers come together. Its sinks may be
// used at once; what one of them shows is never mixed into another's line.
type logView struct {
	mu         sync.Mutex
	out        *bufio.Writer
	timestamps bool
	terminal   bool // out is one: nothing but colours may reach it
}

func (f *front) newLogView(timestamps bool) *logView {
	_, terminal := tty.File(f.out)
	return &logView{out: bufio.NewWriterSize(f.out, 64<<10), timestamps: timestamps, terminal: terminal}
}

// plain shows entries as they come, without a prefix, byte for byte.
func (v *logView) plain() crilog.Sink { return &plainSink{view: v, fresh: true} }

// prefixed shows whole lines, each after prefix.
func (v *logView) prefixed(prefix string) crilog.Sink {
	return &lineSink{view: v, prefix: prefix, open: map[string]*bytes.Buffer{}}
}

// text is a piece of output as the user may see it.
func (v *logView) text(b []byte) []byte {
	if v.terminal {
		return tty.Safe(b)
	}
	return b
}

func (v *logView) flush() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.Flush()
}

type plainSink struct {
	view  *logView
	fresh bool // at the beginning of a line
}

func (s *plainSink) Entry(e crilog.Entry) error {
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timestamps && s.fresh {
		v.out.Write(e.Time)
		v.out.WriteByte(' ')
	}
	_, err := v.out.Write(v.text(e.Text))
	if !e.Partial {
		err = v.out.WriteByte('\n')
	}
	s.fresh = !e.Partial
	return err
}

func (s *plainSink) Flush() error { return s.view.flush() }

// lineSink joins the pieces of a line, which the two streams may have mixed.
type lineSink struct {
	view   *logView
	prefix string
	open   map[string]*bytes.Buffer // by stream
}

func (s *lineSink) Entry(e crilog.Entry) error {
	pending := s.open[e.Stream]
	if !e.Partial && (pending == nil || pending.Len() == 0) {
		return s.show(e.Time, e.Text)
	}
	if pending == nil {
		pending = &bytes.Buffer{}
		s.open[e.Stream] = pending
	}
	if pending.Len() == 0 && s.view.timestamps {
		pending.Write(e.Time)
		pending.WriteByte(' ')
	}
	pending.Write(e.Text)
	if e.Partial && pending.Len() < maxJoined {
		return nil
	}
	defer pending.Reset()
	return s.line(pending.Bytes())
}

// Flush shows nothing of a line that is not complete: more may come.
func (s *lineSink) Flush() error { return s.view.flush() }

// Close shows what was begun and never ended with a newline.
func (s *lineSink) Close() error {
	for _, stream := range []string{"stdout", "stderr"} {
		if b := s.open[stream]; b != nil && b.Len() > 0 {
			if err := s.line(b.Bytes()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return s.view.flush()
}

func (s *lineSink) show(time, text []byte) error {
	if s.view.timestamps {
		text = append(append(append([]byte(nil), time...), ' '), text...)
	}
	return s.line(text)
}

func (s *lineSink) line(text []byte) error {
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.WriteString(s.prefix)
	v.out.Write(v.text(text))
	return v.out.WriteByte('\n')
}

// finish ends a sink that has seen its last entry.
func finish(s crilog.Sink) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return s.Flush()
}
