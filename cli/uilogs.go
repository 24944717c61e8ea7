package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/webui"
	"github.com/podrun/podrun/pod"
)

// maxPageLine is how much of a line the page shows, in bytes.
const maxPageLine = 16 << 10

// Logs follows the files of a pod's logs, as logs -f does, but does not ask its
// supervisor, which may rest: what it has published says when there will be no more.
func (s *pageSource) Logs(ctx context.Context, of webui.LogRequest, line func(webui.Line)) error {
	p, plan, err := s.place(of)
	if err != nil {
		return err
	}
	view := func(ct *pod.Container) crilog.Sink { return newPageSink(ct.Name, line) }
	var streams []*stream
	for _, one := range allStreams(plan, view) {
		if of.Container == "" || one.container.Name == of.Container {
			one.tail = of.Tail
			one.missed = func() {
				line(webui.Line{Container: one.container.Name, Stream: "podrun", Text: "lines are missing here: they were written faster than they could be read, and the log was rotated"})
			}
			streams = append(streams, one)
		}
	}
	if of.Previous {
		return readPrevious(p, streams)
	}
	fromLatest(p, streams)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	failed := make(chan error, 1)
	go func() { failed <- s.noteFrom(ctx, p, plan.RestartPolicy, streams, ended) }()
	err = follow(ctx, p, streams, ended)
	cancel()
	return errors.Join(err, <-failed)
}

// readPrevious gives what the instances before the current ones have written.
func readPrevious(p store.Pod, streams []*stream) error {
	st, err := reading.StatusOf(p)
	if err != nil {
		return err
	}
	var missing []string
	for _, one := range streams {
		attempt, err := reading.Instance(p, one.container.Name, st, true)
		var waits *reading.NotWritten
		if errors.As(err, &waits) {
			missing = append(missing, one.container.Name)
			continue
		}
		if err == nil {
			err = crilog.Read(p.LogDir(one.container.Name), attempt, one.selection(), one.sink)
			err = errors.Join(err, reading.Finish(one.sink))
		}
		if err != nil {
			return err
		}
	}
	if len(missing) == len(streams) {
		return fmt.Errorf("there was no earlier instance of %s", strings.Join(missing, ", "))
	}
	return nil
}

// noteFrom ends streams as the pod's status says, and all of them with the pod.
func (s *pageSource) noteFrom(ctx context.Context, p store.Pod, policy pod.RestartPolicy, streams []*stream, ended chan struct{}) error {
	defer close(ended)
	watched := func() ([]string, error) { return []string{p.RuntimeDir(), p.DataDir()}, nil }
	return whileWatching(ctx, watched, s.lives.poked, func() (bool, error) {
		if !p.Exists() {
			return false, nil
		}
		st, err := reading.StatusOf(p)
		if err != nil {
			if !p.Exists() {
				err = nil
			}
			return false, err
		}
		note(streams, policy, st)
		return p.Alive() && !st.Phase.Terminal() && !allOver(streams), nil
	})
}

// pageSink makes lines for the page of what a container has written.
type pageSink struct {
	container string
	line      func(webui.Line)
	open      map[string]*pageLine // by stream
}

// pageLine is a line of which not all has come.
type pageLine struct {
	time string
	text []byte
	more int // bytes that are not shown
}

func newPageSink(container string, line func(webui.Line)) *pageSink {
	return &pageSink{container, line, map[string]*pageLine{"stdout": {}, "stderr": {}}}
}

// Entry takes a line, or a piece of one.
func (s *pageSink) Entry(e crilog.Entry) error {
	l := s.open[e.Stream]
	if len(l.text) == 0 {
		l.time = string(e.Time)
	}
	n := min(len(e.Text), maxPageLine-len(l.text))
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

// Flush has nothing to do: the page takes lines when it wants.
func (s *pageSink) Flush() error { return nil }

// Close shows what was begun and never ended with a newline.
func (s *pageSink) Close() error {
	for stream, l := range s.open {
		if len(l.text) > 0 {
			s.show(stream)
		}
	}
	return nil
}
