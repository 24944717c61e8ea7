package up

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
)

// detachHooks are the hooks of up -d, which waits until the pods run or, with --wait, are ready.
type detachHooks struct {
	commandHooks
	*upOptions
	signals <-chan os.Signal
	began   time.Time // of the preparation
}

// Loaded sets when --timeout begins.
func (d *detachHooks) Loaded(r *podup.Run, rule follow.ExitCodeFrom) error {
	d.began, r.Independent = time.Now(), true
	return d.commandHooks.Loaded(r, rule)
}

// Prepared subtracts the time of the preparation from --timeout.
func (d *detachHooks) Prepared() error {
	if took := time.Since(d.began); took > time.Second && d.timeout > 0 {
		d.timeout = max(d.timeout-took.Truncate(time.Second), time.Second)
	}
	return nil
}

// AfterStart waits for the pods and workloads, which have controllers of their own.
func (d *detachHooks) AfterStart(ctx context.Context, startErr error) error {
	workloads := d.run.WorkloadRefs()
	errs := []error{startErr}
	for _, w := range workloads {
		errs = append(errs, controller.EnsureRunning(d.env, d.run.Dirs, w))
	}
	if err := errors.Join(errs...); err != nil && len(workloads) > 0 {
		return err
	}
	goal := follow.GoalFor(d.wait && !isDependencyFailure(startErr)) // the pod that has failed does not become ready
	goal.FailFast = d.failFast
	podErr, err := waitForBoth(ctx, d.run, d.signals, func(signals <-chan os.Signal) error {
		return follow.AwaitPods(ctx, d.env, d.run.Started(), goal, d.timeout, signals)
	}, func(signals <-chan os.Signal) error {
		return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
			ctx, cancel := cmdutil.WithTimeout(ctx, d.timeout)
			defer cancel()
			return controller.Await(ctx, d.env, d.run.Dirs, workloads, controller.AwaitOptions{Ready: d.wait, FailFast: d.failFast})
		})
	})
	return errors.Join(startErr, podErr, err)
}

// waitForBoth waits for the pods and the workloads of a run concurrently. Both get the signals.
func waitForBoth(ctx context.Context, r *podup.Run, signals <-chan os.Signal, pods, workloads func(<-chan os.Signal) error) (podErr, workloadErr error) {
	switch {
	case len(r.Targets) == 0 && len(r.Workloads) == 0:
		return nil, nil
	case len(r.Workloads) == 0:
		return pods(signals), nil
	case len(r.Targets) == 0:
		return nil, workloads(signals)
	}
	forWorkloads, forPods := cmdutil.TeeSignals(ctx, signals)
	var both sync.WaitGroup
	both.Go(func() { podErr = pods(forPods) })
	workloadErr = workloads(forWorkloads)
	both.Wait()
	return podErr, workloadErr
}
