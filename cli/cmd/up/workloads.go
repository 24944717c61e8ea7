package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// upWorkloads is the part of `podrun up` that handles workloads, and pods next to them.
func upWorkloads(env *cmdutil.Env, c *cli.Context, l *podup.Run, rule rollout.ExitCodeFrom, failed error, signals <-chan os.Signal) error {
	if !c.Bool("detach") {
		how := foregroundOptions{c.Bool("quiet"), rule, &atomic.Bool{}}
		err := foregroundWorkloads(c.Context, env, l, how, signals)
		return errors.Join(failed, err, deleteCreated(l, c.Context, how))
	}
	errs := []error{failed}
	places := l.WorkloadRefs()
	for _, w := range places {
		errs = append(errs, controller.EnsureRunning(env, l.Dirs, w))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	podErr := make(chan error, 1)
	mine, theirs := cmdutil.TeeSignals(c.Context, signals)
	go func() {
		if len(l.Targets) == 0 {
			podErr <- nil
			return
		}
		podErr <- rollout.AwaitPods(c.Context, env, l.Started(), rollout.GoalFor(c.Bool("wait")), c.Duration("timeout"), theirs)
	}()
	err := cmdutil.Interruptible(c.Context, mine, func(ctx context.Context) error {
		if d := c.Duration("timeout"); d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		}
		return awaitWorkloads(ctx, env, l.Dirs, places, waitOptions{c.Bool("wait"), c.Bool("fail-fast")})
	})
	return errors.Join(<-podErr, err)
}

// awaitWorkloads waits until every workload is rolled out: its new pods run, or with wait it is available
// or complete.
func awaitWorkloads(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, places []store.Workload, how waitOptions) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, w := range places {
		all.Go(func() { errs[i] = awaitWorkload(ctx, env, dirs, w, how) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// waitOptions sets what the wait for a workload includes.
type waitOptions struct {
	wait     bool // until it is available or complete
	failFast bool // return after the first failed pull of an image
}

func awaitWorkload(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, w store.Workload, how waitOptions) error {
	tell := map[string]*rollout.Reporter{}
	last := ""
	for {
		v, err := resource.LoadWorkload(dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			return report.New(report.Failure, "", "%s was removed by another podrun, or is over", w.Name)
		}
		if err != nil {
			return err
		}
		for i := range v.Pods {
			p := &v.Pods[i]
			if v.State.Generation != v.Object.Revision || !rollout.IsCurrent(v, p) || v.Status[p.Name] == nil {
				continue
			}
			if a := v.Status[p.Name].ImagePull; a != nil && a.Error != "" && (how.failFast || !a.Retryable) {
				return report.New(report.Failure, a.Hint, "%s is left as it is: its pod %s waits: %s", v.Name(), p.Name, a.Error)
			}
		}
		for name, st := range v.Status {
			if tell[name] == nil {
				tell[name] = &rollout.Reporter{Out: env.ErrOut, Pod: name}
			}
			tell[name].Status(st)
		}
		word, err := rollout.Reached(v, how.wait)
		if err != nil {
			return rollout.WithLastOutput(env, v, err)
		}
		if how.wait || word != "" {
			last = rollout.ReportRollout(env, v, last)
		}
		if word != "" {
			fmt.Fprintf(env.Out, "%s %s\n", v.Name(), word)
			return nil
		}
		if alive, _, _ := w.Controller(); !alive && !v.Decide(time.Now()).Done { // it was just killed
			if err := controller.EnsureRunning(env, dirs, w); err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); errors.Is(err, context.DeadlineExceeded) {
			return report.New(report.Failure, fmt.Sprintf("podrun get %s, podrun ps and podrun events show why", v.Name()), "%s is not as it should be yet: it is left as it is", v.Name())
		} else if err != nil {
			return err
		}
	}
}
