package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// lockWorkloads makes this process the controller of those workloads that have none.
func (f *foregroundHooks) lockWorkloads() (locked []store.Workload, locks []*store.FileLock, err error) {
	if len(f.run.Workloads) == 0 {
		return nil, nil, nil
	}
	locked, locks, err = controller.LockUncontrolled(f.run.WorkloadRefs())
	if n := len(f.run.Workloads) - len(locked); n > 0 && err == nil {
		fmt.Fprintf(f.env.ErrOut, "podrun: %d of the workloads already have a controller, which keeps running\n", n)
	}
	return locked, locks, err
}

// followWorkloads runs the controller of workloads, and prints the output of their pods, until the
// workloads are over or removed. At the first signal it removes them.
func (f *foregroundHooks) followWorkloads(ctx context.Context, locked []store.Workload, signals <-chan os.Signal) error {
	if len(locked) == 0 {
		return nil
	}
	env, dirs := f.env, f.run.Dirs
	c, err := controller.New(env, dirs, f.run.Launcher, locked)
	if err != nil {
		return err
	}
	defer c.Close()
	shown := &podOutputs{foregroundHooks: f, view: podview.NewLogWriter(env.Out, env.Getenv, false, false)}
	c.OnStarted = func(p *podup.Target) { shown.follow(ctx, p) }
	for _, w := range locked {
		shown.join(ctx, dirs, w)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, nil) }()
	select {
	case err = <-done:
		shown.all.Wait()
		if f.exitRule == follow.ExitNone {
			return err
		}
		return errors.Join(err, follow.JobFailures(env, dirs, locked))
	case sig := <-signals:
		f.signaled.Store(true)
		env.EndInterruptLine()
		fmt.Fprintln(env.ErrOut, "podrun: stopping; Ctrl-C again stops at once")
		if err := controller.MarkDeleting(env, dirs, locked); err != nil {
			return err
		}
		for _, w := range locked {
			if v, err := resource.LoadWorkload(dirs, w); err == nil { // otherwise it is gone
				for _, p := range v.StoredPods {
					defer podclient.ReportWaiting(env.ErrOut, "stopping", p, nil, nil)()
				}
			}
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
	*foregroundHooks
	view *podview.LogWriter
	all  sync.WaitGroup
}

// follow prints a pod's output and state changes until it ends.
func (s *podOutputs) follow(ctx context.Context, p *podup.Target) {
	streams := s.streams(p, func(c *pod.Container) crilog.Sink { return s.view.Prefixed(p.Pod.Name + "/" + c.Name + " | ") })
	s.all.Go(func() {
		err := followPod(ctx, s.env, p, streams)
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
	for _, p := range v.StoredPods {
		plan, err := p.Plan()
		if err == nil && p.Alive() {
			s.follow(ctx, &podup.Target{Pod: p, Plan: plan, Step: upplan.Step{Action: upplan.Keep}})
		}
	}
}
