package cli

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// stream is the output of one container on its way to the user.
type stream struct {
	container *pod.Container
	init      bool
	first     int       // the first attempt to show
	tail      int       // of that one only so many lines; -1: all
	since     time.Time // only what was written from then on; zero: all
	sink      crilog.Sink
	missed    func() // is told of lines that were rotated away before they were shown

	over  sync.Once
	done  chan struct{} // closed: the container writes nothing any more
	shown chan struct{} // closed: all it wrote has been shown
}

func newStream(c *pod.Container, init bool, sink crilog.Sink) *stream {
	return &stream{container: c, init: init, tail: -1, sink: sink, done: make(chan struct{}), shown: make(chan struct{})}
}

func (s *stream) selection() crilog.Selection { return crilog.Selection{Tail: s.tail, Since: s.since} }

func (s *stream) end() { s.over.Do(func() { close(s.done) }) }

// overBy says whether a container will not write any more after a status in which
// it has terminated.
func (s *stream) overBy(policy pod.RestartPolicy, st *pod.ContainerStatus) bool {
	end := st.State.Terminated
	policy = cmp.Or(s.container.RestartPolicy, policy)
	switch {
	case end == nil || s.container.Sidecar || len(s.container.RestartRules) > 0:
		return false // of one with rules the end of the pod is waited for
	case policy == pod.RestartNever:
		return true
	}
	return end.ExitCode == 0 && (s.init || policy == pod.RestartOnFailure)
}

// follow shows what the streams' containers write until each has written its last
// line: each init container's output before that of those that start after it, the
// rest as it comes. note tells it of states; ended is closed when the pod's
// processes are gone.
func follow(ctx context.Context, p store.Pod, streams []*stream, ended <-chan struct{}) error {
	dirs := make([]string, len(streams))
	for i, s := range streams {
		dirs[i] = p.LogDir(s.container.Name)
	}
	watcher := dirwatch.Watch(dirs...)
	defer watcher.Close()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-ended:
			for _, s := range streams {
				s.end()
			}
		case <-stopped:
		}
	}()
	errs := make([]error, len(streams))
	var all sync.WaitGroup
	for i, s := range streams {
		f := &crilog.Follower{Dir: dirs[i], First: s.first, Selection: s.selection(), Wake: watcher.Wake(dirs[i]), Done: s.done, Sink: s.sink, OnSkipped: s.missed}
		all.Go(func() {
			defer close(s.shown)
			awaitInits(ctx, streams[:i])
			errs[i] = errors.Join(f.Run(ctx), reading.Finish(s.sink))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// awaitInits waits until everything has been shown of the init containers among
// streams that had to end before the next container could start.
func awaitInits(ctx context.Context, streams []*stream) {
	for _, s := range streams {
		if !s.init || s.container.Sidecar {
			continue
		}
		select {
		case <-s.shown:
		case <-ctx.Done():
		}
	}
}

// note ends the streams of containers that have written their last line.
func note(streams []*stream, policy pod.RestartPolicy, st *pod.Status) {
	for _, s := range streams {
		if c, ok := st.Container(s.container.Name); ok && s.overBy(policy, c) {
			s.end()
		}
	}
}
