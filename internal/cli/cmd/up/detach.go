package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
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
		return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error { return d.awaitWorkloads(ctx, workloads) })
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

// awaitWorkloads waits until every workload is rolled out: its new pods run, or with --wait it is
// available or complete.
func (d *detachHooks) awaitWorkloads(ctx context.Context, list []store.Workload) error {
	ctx, cancel := cmdutil.WithTimeout(ctx, d.timeout)
	defer cancel()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, w := range list {
		all.Go(func() { errs[i] = d.awaitWorkload(ctx, w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *detachHooks) awaitWorkload(ctx context.Context, w store.Workload) error {
	reporters := map[string]*follow.Reporter{}
	last := ""
	for {
		v, err := resource.LoadWorkload(d.run.Dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			return report.New(report.Failure, "", "%s was removed, or has completed", w.Name)
		}
		if err != nil {
			return err
		}
		if err := d.pullFailure(v); err != nil {
			return err
		}
		for name, st := range v.Status {
			if reporters[name] == nil {
				reporters[name] = &follow.Reporter{Out: d.env.ErrOut, Pod: name}
			}
			reporters[name].Status(st)
		}
		word, err := follow.Reached(v, d.wait)
		if err != nil {
			return follow.WithLastOutput(d.env, v, err)
		}
		if d.wait || word != "" {
			last = follow.ReportRollout(d.env, v, last)
		}
		if word != "" {
			fmt.Fprintf(d.env.Out, "%s %s\n", v.Name(), word)
			return nil
		}
		if alive, _, _ := w.Controller(); !alive && !v.Decide(time.Now()).Done { // its controller was killed
			if err := controller.EnsureRunning(d.env, d.run.Dirs, w); err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); errors.Is(err, context.DeadlineExceeded) {
			return report.New(report.Failure, fmt.Sprintf("podrun get %s, podrun ps and podrun events show why", v.Name()), "timed out; the roll-out of %s continues", v.Name())
		} else if err != nil {
			return err
		}
	}
}

// pullFailure returns the failed pull of an image because of which the command stops waiting for a
// workload, or nil.
func (d *detachHooks) pullFailure(v *resource.WorkloadInfo) error {
	for i := range v.Pods {
		p := &v.Pods[i]
		if v.State.Generation != v.Object.Revision || !follow.IsCurrent(v, p) || v.Status[p.Name] == nil {
			continue
		}
		if a := v.Status[p.Name].ImagePull; a != nil && a.Error != "" && (d.failFast || !a.Retryable) {
			return report.New(report.Failure, a.Hint, "%s keeps running: its pod %s waits: %s", v.Name(), p.Name, a.Error)
		}
	}
	return nil
}
