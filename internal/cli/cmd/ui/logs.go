package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/logstream"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/webui"
)

// MaxPageLine is the maximum length of a line on the page, in bytes.
const MaxPageLine = 16 << 10

// Logs follows the log files of a pod, as logs -f does. It does not connect to the supervisor, which may
// hibernate: the published status shows when no more output will come.
func (s *pageSource) Logs(ctx context.Context, of webui.LogRequest, line func(webui.Line)) error {
	p, plan, err := s.podAndPlan(of)
	if err != nil {
		return err
	}
	view := func(ct *pod.Container) crilog.Sink { return newPageSink(ct.Name, line) }
	var streams []*logstream.Stream
	for _, stream := range logstream.New(plan, view) {
		if of.Container == "" || stream.Container.Name == of.Container {
			stream.Tail = of.Tail
			stream.Missed = func() {
				line(webui.Line{Container: stream.Container.Name, Stream: "podrun", Text: "lines are missing here: the log was rotated before they were read"})
			}
			streams = append(streams, stream)
		}
	}
	if of.Previous {
		return readPrevious(p, streams)
	}
	return logstream.FollowWhile(ctx, p, streams, func(ctx context.Context) error { return s.watch(ctx, p, plan.RestartPolicy, streams) })
}

// readPrevious reads the output of the instances before the current ones.
func readPrevious(p store.Pod, streams []*logstream.Stream) error {
	st, err := podview.StatusOf(p)
	if err != nil {
		return err
	}
	var missing []string
	for _, stream := range streams {
		var waits *podview.NotWritten
		if err := stream.Print(p, st, true); errors.As(err, &waits) {
			missing = append(missing, stream.Container.Name)
		} else if err != nil {
			return err
		}
	}
	if len(missing) == len(streams) {
		return fmt.Errorf("there was no earlier instance of %s", strings.Join(missing, ", "))
	}
	return nil
}

// watch ends streams according to the pod's status. It returns when the pod ends.
func (s *pageSource) watch(ctx context.Context, p store.Pod, policy pod.RestartPolicy, streams []*logstream.Stream) error {
	watched := func() ([]string, error) { return []string{p.RuntimeDir(), p.DataDir()}, nil }
	return dirwatch.While(ctx, watched, s.lives.Changed, func() (bool, error) {
		if !p.Exists() {
			return false, nil
		}
		st, err := podview.StatusOf(p)
		if err != nil {
			if !p.Exists() {
				err = nil
			}
			return false, err
		}
		logstream.EndFinished(streams, policy, st)
		return p.Alive() && !st.Phase.Terminal() && !logstream.AllDone(streams), nil
	})
}

// pageSink converts a container's output to lines for the page.
type pageSink struct {
	container string
	line      func(webui.Line)
	open      map[string]*pageLine // by stream
}

// pageLine is an incomplete line.
type pageLine struct {
	time string
	text []byte
	more int // number of bytes that are cut off
}

func newPageSink(container string, line func(webui.Line)) *pageSink {
	return &pageSink{container, line, map[string]*pageLine{"stdout": {}, "stderr": {}}}
}

// Entry adds a line, or a piece of one.
func (s *pageSink) Entry(e crilog.Entry) error {
	l := s.open[e.Stream]
	if len(l.text) == 0 {
		l.time = string(e.Time)
	}
	n := min(len(e.Text), MaxPageLine-len(l.text))
	l.text, l.more = append(l.text, e.Text[:n]...), l.more+len(e.Text)-n
	if !e.Partial {
		s.show(e.Stream)
	}
	return nil
}

func (s *pageSink) show(stream string) {
	l := s.open[stream]
	text := string(tty.Plain(l.text))
	if l.more > 0 {
		text += fmt.Sprintf(" … and %d bytes more", l.more)
	}
	s.line(webui.Line{Container: s.container, Time: l.time, Stream: stream, Text: strings.ToValidUTF8(text, string(utf8.RuneError))})
	s.open[stream] = &pageLine{}
}

// Flush does nothing: the page fetches lines by itself.
func (s *pageSink) Flush() error { return nil }

// Close writes a last line without a newline.
func (s *pageSink) Close() error {
	for stream, l := range s.open {
		if len(l.text) > 0 {
			s.show(stream)
		}
	}
	return nil
}
