package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// printLogs shows what is there. Of several containers those that have not started
// are named on stderr; of one it is the error.
func (f *front) printLogs(pods []*podLogs, previous bool) error {
	var errs []error
	for _, l := range pods {
		st, err := reading.StatusOf(l.place)
		if err != nil {
			return err
		}
		for _, s := range l.streams {
			attempt, err := reading.Instance(l.place, s.container.Name, st, previous)
			if err == nil {
				err = crilog.Read(l.place.LogDir(s.container.Name), attempt, s.selection(), s.sink)
				err = errors.Join(err, reading.Finish(s.sink))
			}
			if err == nil {
				continue
			}
			if len(pods) == 1 && len(l.streams) == 1 {
				return err
			}
			var waits *reading.NotWritten
			if !errors.As(err, &waits) {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintln(f.err, err)
		}
	}
	return errors.Join(errs...)
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
			watchErr = remote.WaitGone(ctx, p)
		}
	}()
	err := follow(ctx, p, streams, ended)
	cancel()
	<-ended
	if errors.Is(watchErr, remote.ErrNotRunning) || errors.Is(watchErr, context.Canceled) {
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
		if all, err := crilog.Attempts(p.LogDir(s.container.Name)); err == nil && len(all) > 0 {
			s.first = all[len(all)-1]
		}
	}
}
