// Package logstream follows the output of a pod's containers.
package logstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// Stream is the output of one container on its way to the user.
type Stream struct {
	Container *pod.Container
	init      bool
	first     int       // the first attempt to print
	Tail      int       // number of lines of the first attempt; -1: all
	Since     time.Time // print lines from this time on; zero: all
	Sink      crilog.Sink
	Missed    func() // called for lines that were rotated away before they were printed

	once  sync.Once
	done  chan struct{} // closed when the container will write nothing more
	shown chan struct{} // closed when all its output has been printed
}

// NewOne returns the stream of one container.
func NewOne(c *pod.Container, init bool, sink crilog.Sink) *Stream {
	return &Stream{Container: c, init: init, Tail: -1, Sink: sink, done: make(chan struct{}), shown: make(chan struct{})}
}

// selection returns which part of the first attempt is printed.
func (s *Stream) selection() crilog.Selection { return crilog.Selection{Tail: s.Tail, Since: s.Since} }

// Print prints the output of the container's current attempt, or of the one before it.
func (s *Stream) Print(p store.Pod, st *pod.Status, previous bool) error {
	attempt, err := podview.Instance(p, s.Container.Name, st, previous)
	if err != nil {
		return err
	}
	return podview.PrintLog(p, s.Container.Name, attempt, s.selection(), s.Sink)
}

func (s *Stream) end() { s.once.Do(func() { close(s.done) }) }

// isLast reports whether the container has terminated, according to its status, and will not be started
// again.
func (s *Stream) isLast(policy pod.RestartPolicy, st *pod.ContainerStatus) bool {
	end := st.State.Terminated
	policy = cmp.Or(s.Container.RestartPolicy, policy)
	switch {
	case end == nil || s.Container.Sidecar || len(s.Container.RestartRules) > 0:
		return false // with restart rules, only the end of the pod decides
	case policy == pod.RestartNever:
		return true
	}
	return end.ExitCode == 0 && (s.init || policy == pod.RestartOnFailure)
}

// Follow prints the output of the streams' containers until each has written its last line. The output of
// an init container comes before the output of containers that start after it; the rest is printed as it
// arrives. The caller ends each stream by EndFinished when the pod's status reports its end; closing ended
// ends all streams.
func Follow(ctx context.Context, p store.Pod, streams []*Stream, ended <-chan struct{}) error {
	dirs := make([]string, len(streams))
	for i, s := range streams {
		dirs[i] = p.LogDir(s.Container.Name)
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
		f := &crilog.Follower{Dir: dirs[i], First: s.first, Selection: s.selection(), Wake: watcher.Wake(dirs[i]), Done: s.done, Sink: s.Sink, OnSkipped: s.Missed}
		all.Go(func() {
			defer close(s.shown)
			awaitInits(ctx, streams[:i])
			errs[i] = errors.Join(f.Run(ctx), podview.Finish(s.Sink))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// FollowWhile follows the streams from the current attempts on, while watch runs. watch ends streams
// according to the pod's status; its context ends with the last stream.
func FollowWhile(ctx context.Context, p store.Pod, streams []*Stream, watch func(context.Context) error) error {
	FromLatest(p, streams)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	var watchErr error
	go func() {
		defer close(ended)
		watchErr = watch(ctx)
	}()
	err := Follow(ctx, p, streams, ended)
	cancel()
	<-ended
	return errors.Join(err, watchErr)
}

// FollowPod follows the streams until the containers, or the pod, have ended.
func FollowPod(ctx context.Context, p store.Pod, plan *pod.Plan, streams []*Stream) error {
	return FollowWhile(ctx, p, streams, func(ctx context.Context) error {
		_, err := podclient.Follow(ctx, p, func(st *pod.Status) bool {
			EndFinished(streams, plan.RestartPolicy, st)
			return AllDone(streams)
		})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled) { // the pod is removed, or all output is printed
			return nil
		}
		return err
	})
}

// awaitInits waits until all output has been printed of the init containers among streams that had to end
// before the next container could start.
func awaitInits(ctx context.Context, streams []*Stream) {
	for _, s := range streams {
		if !s.init || s.Container.Sidecar {
			continue
		}
		select {
		case <-s.shown:
		case <-ctx.Done():
		}
	}
}

// EndFinished ends the streams of containers that have written their last line.
func EndFinished(streams []*Stream, policy pod.RestartPolicy, st *pod.Status) {
	for _, s := range streams {
		if c, ok := st.Container(s.Container.Name); ok && s.isLast(policy, c) {
			s.end()
		}
	}
}

// New returns the streams of all containers of a plan, init containers first.
func New(plan *pod.Plan, sink func(*pod.Container) crilog.Sink) []*Stream {
	var streams []*Stream
	for i := range plan.InitContainers {
		streams = append(streams, NewOne(&plan.InitContainers[i], true, sink(&plan.InitContainers[i])))
	}
	for i := range plan.Containers {
		streams = append(streams, NewOne(&plan.Containers[i], false, sink(&plan.Containers[i])))
	}
	return streams
}

// FromLatest makes streams start with the current instances.
func FromLatest(p store.Pod, streams []*Stream) {
	for _, s := range streams {
		// If a directory cannot be listed, the follower reports it.
		if all, err := crilog.Attempts(p.LogDir(s.Container.Name)); err == nil && len(all) > 0 {
			s.first = all[len(all)-1]
		}
	}
}

// AllDone reports whether no container of the streams will write anything more.
func AllDone(streams []*Stream) bool {
	return !slices.ContainsFunc(streams, func(s *Stream) bool {
		select {
		case <-s.done:
			return false
		default:
			return true
		}
	})
}

// MissedLines returns a function that reports lines which were rotated away before they could be printed.
func MissedLines(env *cmdutil.Env, name, container string) func() {
	return func() {
		fmt.Fprintf(env.ErrOut, "podrun: lines of pod/%s/%s are missing here: its log was rotated before they were shown\n", name, container)
	}
}

// IsInit reports whether a container is one of the plan's init containers.
func IsInit(plan *pod.Plan, name string) bool {
	for _, c := range plan.InitContainers {
		if c.Name == name {
			return true
		}
	}
	return false
}
