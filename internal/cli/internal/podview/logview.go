package podview

import (
	"bufio"
	"io"
	"sync"

	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
)

// maxJoined is how much of one line is kept in memory before it is printed in pieces: a program may never
// write a newline.
const maxJoined = 256 << 10

// LogWriter merges the logs of several containers into one output. Its sinks may be used concurrently;
// the output of one is never mixed into another's line.
type LogWriter struct {
	mu         sync.Mutex
	out        *bufio.Writer
	timestamps bool
	Terminal   bool      // out is a terminal
	Colour     bool      // colour prefixes
	painted    int       // number of coloured prefixes so far
	raw        bool      // containers' output may reach a terminal unchanged
	open       *openLine // the unfinished line on the output, if any
}

// NewLogWriter returns a LogWriter that prints to out. raw: containers' output may reach a terminal
// unchanged.
func NewLogWriter(out io.Writer, getenv func(string) string, timestamps, raw bool) *LogWriter {
	_, terminal := tty.File(out)
	return &LogWriter{out: bufio.NewWriterSize(out, 64<<10), timestamps: timestamps, Terminal: terminal, raw: raw, Colour: tty.Colour(out, getenv)}
}

// Plain returns a sink that prints lines byte for byte.
func (v *LogWriter) Plain() crilog.Sink { return v.Prefixed("") }

// Prefixed returns a sink that prints whole lines, each after prefix.
func (v *LogWriter) Prefixed(prefix string) crilog.Sink {
	return &lineSink{view: v, prefix: prefix, lines: map[string]*openLine{"stdout": {}, "stderr": {}}}
}

// Paint returns a prefix in the next colour, if colours are enabled.
func (v *LogWriter) Paint(prefix string) string {
	if !v.Colour {
		return prefix
	}
	v.painted++
	return tty.Nth(v.painted-1) + prefix + tty.Reset
}

// text returns output that is safe to print: on a terminal it keeps only colours of the control
// sequences.
func (v *LogWriter) text(b []byte) []byte {
	if v.Terminal && !v.raw {
		return tty.Safe(b)
	}
	return b
}

func (v *LogWriter) flush() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.out.Flush()
}

// openLine is an incomplete line of a stream.
type openLine struct {
	begun bool
	text  []byte // not printed yet
}

// lineSink joins the pieces of a line, which the two streams may have mixed.
type lineSink struct {
	view   *LogWriter
	prefix string
	lines  map[string]*openLine // by stream
}

// Entry adds a line, or a piece of one.
func (s *lineSink) Entry(e crilog.Entry) error {
	l := s.lines[e.Stream]
	if !l.begun && s.view.timestamps {
		l.text = append(append(l.text, e.Time...), ' ')
	}
	l.begun = e.Partial
	l.text = append(l.text, e.Text...)
	if e.Partial && len(l.text) < maxJoined {
		return nil
	}
	return s.show(l, !e.Partial)
}

// show prints the present part of a line.
func (s *lineSink) show(l *openLine, whole bool) error {
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open != l {
		if v.open != nil {
			v.out.WriteByte('\n')
		}
		v.out.WriteString(s.prefix)
	}
	_, err := v.out.Write(v.text(l.text))
	l.text = l.text[:0]
	v.open = l
	if whole || s.prefix != "" {
		err = v.out.WriteByte('\n')
		v.open = nil
	}
	return err
}

// Flush prints the beginning of a line, which may be a prompt, on a terminal. Elsewhere lines stay whole.
func (s *lineSink) Flush() error {
	if s.view.Terminal && s.prefix == "" {
		if err := s.begun(); err != nil {
			return err
		}
	}
	return s.view.flush()
}

// Close prints a last line without a newline.
func (s *lineSink) Close() error {
	if err := s.begun(); err != nil {
		return err
	}
	return s.view.flush()
}

func (s *lineSink) begun() error {
	for _, stream := range []string{"stdout", "stderr"} {
		if l := s.lines[stream]; len(l.text) > 0 {
			if err := s.show(l, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Limited returns a sink that ends after left bytes, including times and excluding prefixes, as kubectl
// counts them.
func Limited(s crilog.Sink, left int64, timestamps bool) crilog.Sink {
	return &limitSink{Sink: s, left: left, timestamps: timestamps, begun: map[string]bool{}}
}

// limitSink ends after a number of bytes, including times and excluding prefixes, as kubectl counts them.
type limitSink struct {
	crilog.Sink
	left       int64
	timestamps bool
	begun      map[string]bool // by stream
}

// Entry passes on a line, or a piece of one, within the limit.
func (s *limitSink) Entry(e crilog.Entry) error {
	if s.timestamps && !s.begun[e.Stream] {
		s.left -= int64(len(e.Time) + 1)
	}
	s.begun[e.Stream] = e.Partial
	if s.left <= 0 {
		return crilog.ErrStop
	}
	n := int64(len(e.Text))
	if !e.Partial {
		n++
	}
	if n > s.left {
		e.Text, e.Partial = e.Text[:min(s.left, int64(len(e.Text)))], true
	}
	if s.left -= n; s.left > 0 {
		return s.Sink.Entry(e)
	}
	if err := s.Sink.Entry(e); err != nil {
		return err
	}
	return crilog.ErrStop
}

// Close closes the sink behind it.
func (s *limitSink) Close() error { return Finish(s.Sink) }

// Finish closes a sink after its last entry.
func Finish(s crilog.Sink) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return s.Flush()
}
