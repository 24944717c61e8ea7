package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/logstream"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// foregroundWorkloads runs the controllers of the run's workloads, and prints the output of their pods
// and of other pods. At the first signal it stops what it has started.
func foregroundWorkloads(ctx context.Context, env *cmdutil.Env, l *podup.Run, how foregroundOptions, signals <-chan os.Signal) error {
	boot, err := controller.BootID()
	if err != nil {
		return err
	}
	own, locks, err := controller.LockUncontrolled(l.WorkloadRefs(), boot)
	defer func() {
		for _, lock := range locks {
			lock.Close()
		}
	}()
	if err != nil {
		return err
	}
	if n := len(l.Workloads) - len(own); n > 0 {
		fmt.Fprintf(env.ErrOut, "podrun: %d of the objects have a controller already, which goes on with them\n", n)
	}
	mine, theirs := cmdutil.TeeSignals(ctx, signals)
	podErr := make(chan error, 1)
	go func() {
		if len(l.Targets) == 0 {
			podErr <- nil
			return
		}
		podErr <- foreground(ctx, env, l.Launcher, l.Started(), how, theirs)
	}()
	return errors.Join(attendWorkloads(ctx, env, l, own, how, mine), <-podErr)
}

// attendWorkloads runs workloads until they are over or removed.
func attendWorkloads(ctx context.Context, env *cmdutil.Env, l *podup.Run, own []store.Workload, how foregroundOptions, signals <-chan os.Signal) error {
	if len(own) == 0 {
		return nil
	}
	c, err := controller.New(env, l.Dirs, l.Launcher, own)
	if err != nil {
		return err
	}
	defer c.Close()
	shown := &podOutputs{env: env, quiet: how.quiet, view: podview.NewLogWriter(env.Out, env.Getenv, false, false)}
	c.OnStarted = func(p *podup.Target) { shown.follow(ctx, p) }
	for _, w := range own {
		shown.join(ctx, l.Dirs, w)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, nil) }()
	select {
	case err = <-done:
		shown.all.Wait()
		if how.rule == rollout.ExitNone {
			return err
		}
		return errors.Join(err, rollout.JobFailures(env, l.Dirs, own))
	case sig := <-signals:
		how.signaled.Store(true)
		env.EndInterruptLine()
		fmt.Fprintln(env.ErrOut, "podrun: stopping; Ctrl-C again stops at once")
		if err := controller.MarkDeleting(env, l.Dirs, own); err != nil {
			return err
		}
		go func() {
			<-signals
			env.EndInterruptLine()
			c.StopNow()
		}()
		err := <-done
		shown.all.Wait()
		return errors.Join(err, exitcode.Interrupted(sig))
	}
}

// podOutputs prints the output of a changing set of pods.
type podOutputs struct {
	env   *cmdutil.Env
	quiet bool
	view  *podview.LogWriter
	all   sync.WaitGroup
}

// follow prints a pod's output and state changes until it ends.
func (s *podOutputs) follow(ctx context.Context, p *podup.Target) {
	var streams []*logstream.Stream
	if !s.quiet {
		streams = logstream.New(p.Plan, func(c *pod.Container) crilog.Sink {
			return s.view.Prefixed(p.Pod.Name + "/" + c.Name + " | ")
		})
		for _, one := range streams {
			one.Missed = logstream.MissedLines(s.env, p.Pod.Name, one.Container.Name)
			if p.Running {
				one.Tail = rollout.ContextLines
			}
		}
		if p.Running {
			logstream.FromLatest(p.Pod, streams)
		}
	}
	s.all.Go(func() {
		err := attend(ctx, s.env, p, streams)
		if err != nil && ctx.Err() == nil && p.Last != nil && !p.Last.Deleting && !errors.Is(err, podclient.ErrNotRunning) {
			report.Print(s.env.ErrOut, err)
		}
	})
}

// join follows the pods that a workload already has.
func (s *podOutputs) join(ctx context.Context, dirs store.Dirs, w store.Workload) {
	v, err := resource.LoadWorkload(dirs, w)
	if err != nil {
		return // its controller reports the error
	}
	for _, p := range v.Places {
		plan, err := p.Plan()
		if err == nil && p.Alive() {
			s.follow(ctx, &podup.Target{Pod: p, Plan: plan, Running: true})
		}
	}
}
