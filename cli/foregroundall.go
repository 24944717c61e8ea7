package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// foregroundAll is the controller of the launch's workloads, and shows what their pods and
// those beside them write. At the first signal it ends what it has started.
func (f *front) foregroundAll(ctx context.Context, l *launch, how showing, signals <-chan os.Signal) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	own, locks, err := lockAll(l.workplaces(), boot)
	defer func() {
		for _, lock := range locks {
			lock.Close()
		}
	}()
	if err != nil {
		return err
	}
	if n := len(l.workloads) - len(own); n > 0 {
		fmt.Fprintf(f.err, "podrun: %d of the objects have a controller already, which goes on with them\n", n)
	}
	mine, theirs := tee(ctx, signals)
	podErr := make(chan error, 1)
	go func() {
		if len(l.pods) == 0 {
			podErr <- nil
			return
		}
		podErr <- f.foreground(ctx, l.keeper, l.started(), how, theirs)
	}()
	return errors.Join(f.attendWorkloads(ctx, l, own, how, mine), <-podErr)
}

// attendWorkloads looks after workloads until they are over or gone.
func (f *front) attendWorkloads(ctx context.Context, l *launch, own []store.Workload, how showing, signals <-chan os.Signal) error {
	if len(own) == 0 {
		return nil
	}
	c, err := f.newController(l.dirs, l.keeper, own)
	if err != nil {
		return err
	}
	defer c.close()
	shown := &shownPods{front: f, quiet: how.quiet, view: reading.NewLogView(f.out, f.getenv, false, false)}
	c.fresh = func(p *upPod) { shown.follow(ctx, p) }
	for _, w := range own {
		shown.join(ctx, l.dirs, w)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.run(ctx, nil) }()
	select {
	case err = <-done:
		shown.all.Wait()
		if how.rule == exitNone {
			return err
		}
		return errors.Join(err, f.verdicts(l.dirs, own))
	case sig := <-signals:
		how.signaled.Store(true)
		f.afterCtrlC()
		fmt.Fprintln(f.err, "podrun: stopping; Ctrl-C again stops at once")
		if err := f.discard(l.dirs, own); err != nil {
			return err
		}
		go func() {
			<-signals
			f.afterCtrlC()
			c.hurry()
		}()
		err := <-done
		shown.all.Wait()
		return errors.Join(err, interrupted(sig))
	}
}

// discard has workloads removed by their controller.
func (f *front) discard(dirs store.Dirs, list []store.Workload) error {
	lock, err := dirs.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	var errs []error
	for _, w := range list {
		o, err := w.Object()
		if err == nil && !o.Deleting {
			o.Deleting = true
			err = dirs.PutObject(o)
		}
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// verdicts are the failures of Jobs that are over.
func (f *front) verdicts(dirs store.Dirs, list []store.Workload) error {
	var errs []error
	for _, w := range list {
		v, err := viewOf(dirs, w)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = v.arrived(true)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// shownPods shows what pods that come and go write.
type shownPods struct {
	front *front
	quiet bool
	view  *reading.LogView
	all   sync.WaitGroup
}

// follow shows what a pod writes, and what happens to it, to its end.
func (s *shownPods) follow(ctx context.Context, p *upPod) {
	var streams []*stream
	if !s.quiet {
		streams = allStreams(p.plan, func(c *pod.Container) crilog.Sink {
			return s.view.Prefixed(p.place.Name + "/" + c.Name + " | ")
		})
		for _, one := range streams {
			one.missed = s.front.missed(p.place.Name, one.container.Name)
			if p.running {
				one.tail = contextLines
			}
		}
		if p.running {
			fromLatest(p.place, streams)
		}
	}
	s.all.Go(func() {
		err := s.front.attend(ctx, p, streams)
		if err != nil && ctx.Err() == nil && p.last != nil && !p.last.Deleting && !errors.Is(err, remote.ErrNotRunning) {
			report.Print(s.front.err, err)
		}
	})
}

// join shows the pods that a workload has already.
func (s *shownPods) join(ctx context.Context, dirs store.Dirs, w store.Workload) {
	v, err := viewOf(dirs, w)
	if err != nil {
		return // its controller says it
	}
	for _, p := range v.places {
		plan, err := p.Plan()
		if err == nil && p.Alive() {
			s.follow(ctx, &upPod{place: p, plan: plan, running: true})
		}
	}
}
