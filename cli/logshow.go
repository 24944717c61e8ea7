package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// printLogs shows what is there. Of several containers those that have not started
// are named on stderr; of one it is the error.
func (f *front) printLogs(pods []*podLogs, previous bool) error {
	var errs []error
	for _, l := range pods {
		st, err := statusOf(l.place)
		if err != nil {
			return err
		}
		for _, s := range l.streams {
			attempt, err := instance(l.place, s.container.Name, st, previous)
			if err == nil {
				err = crilog.Read(l.place.LogDir(s.container.Name), attempt, s.selection(), s.sink)
				err = errors.Join(err, finish(s.sink))
			}
			if err == nil {
				continue
			}
			if len(pods) == 1 && len(l.streams) == 1 {
				return err
			}
			var waits *notWritten
			if !errors.As(err, &waits) {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintln(f.err, err)
		}
	}
	return errors.Join(errs...)
}

// notWritten says that a container has no such log (yet).
type notWritten struct{ what string }

func (e *notWritten) Error() string { return e.what }

// instance is the attempt whose log is meant.
func instance(p store.Pod, container string, st *pod.Status, previous bool) (int, error) {
	all, err := crilog.Instances(p.LogDir(container))
	if err != nil {
		return 0, err
	}
	c, _ := st.Container(container)
	if !previous {
		if len(all) > 0 {
			return all[len(all)-1], nil
		}
		return 0, report.New(report.Failure, "podrun logs -f waits for it", "%w",
			&notWritten{fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, p.Name, waitingReason(c))})
	}
	// While it waits for its next start, the instance before that one is the newest.
	if c != nil && c.State.Waiting == nil && len(all) > 0 {
		all = all[:len(all)-1]
	}
	if len(all) == 0 || c == nil || c.RestartCount == 0 && c.LastState.Terminated == nil {
		return 0, &notWritten{fmt.Sprintf("previous terminated container %q in pod %q not found", container, p.Name)}
	}
	return all[len(all)-1], nil
}

func waitingReason(c *pod.ContainerStatus) string {
	if c != nil && c.State.Waiting != nil && c.State.Waiting.Reason != "" {
		return c.State.Waiting.Reason
	}
	return "ContainerCreating"
}

// followAll shows what is there and what comes of several pods.
func (f *front) followAll(ctx context.Context, pods []*podLogs) error {
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, l := range pods {
		all.Go(func() { errs[i] = f.followLogs(ctx, l.place, l.plan, l.streams) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// followLogs shows what is there and what comes.
func (f *front) followLogs(ctx context.Context, p store.Pod, plan *pod.Plan, streams []*stream) error {
	fromLatest(p, streams)
	ended := make(chan struct{})
	var watchErr error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(ended)
		watchErr = watch(ctx, p, func(st *pod.Status) bool {
			note(streams, plan.RestartPolicy, st)
			return allOver(streams)
		})
		if watchErr == nil && !allOver(streams) {
			watchErr = waitGone(ctx, p)
		}
	}()
	err := follow(ctx, p, streams, ended)
	cancel()
	<-ended
	if errors.Is(watchErr, errNotRunning) || errors.Is(watchErr, context.Canceled) {
		watchErr = nil
	}
	return errors.Join(err, watchErr)
}

func allOver(streams []*stream) bool {
	return !slices.ContainsFunc(streams, func(s *stream) bool {
		select {
		case <-s.done:
			return false
		default:
			return true
		}
	})
}

// fromLatest lets streams begin with the instances of now.
func fromLatest(p store.Pod, streams []*stream) {
	for _, s := range streams {
		// A directory that cannot be listed is the follower's to complain of.
		if all, err := crilog.Instances(p.LogDir(s.container.Name)); err == nil && len(all) > 0 {
			s.first = all[len(all)-1]
		}
	}
}
