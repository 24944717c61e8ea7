package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// AwaitOptions are what Await waits for.
type AwaitOptions struct {
	Ready    bool // until the workloads are available or complete, not as soon as their new pods run
	FailFast bool // the first failed pull of an image is an error
	Ends     bool // a roll-out that is not done in time does not continue
}

// Await waits until every workload is rolled out, and reports each.
func Await(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, list []store.Workload, o AwaitOptions) error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, w := range list {
		all.Go(func() { errs[i] = await(ctx, env, dirs, w, o) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func await(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, w store.Workload, o AwaitOptions) error {
	reporters := map[string]*follow.Reporter{}
	last := ""
	for {
		v, err := resource.LoadWorkload(dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			return report.New(report.Failure, "", "%s was removed, or has completed", w.Name)
		}
		if err != nil {
			return err
		}
		if err := pullFailure(v, o.FailFast); err != nil {
			return err
		}
		for name, st := range v.Status {
			if reporters[name] == nil {
				reporters[name] = &follow.Reporter{Out: env.ErrOut, Pod: name}
			}
			reporters[name].Status(st)
		}
		word, err := follow.Reached(v, o.Ready)
		if err != nil {
			return follow.WithLastOutput(env, v, err)
		}
		if o.Ready || word != "" {
			last = follow.ReportRollout(env, v, last)
		}
		if word != "" {
			fmt.Fprintf(env.Out, "%s %s\n", v.Name(), word)
			return nil
		}
		if alive, _, _ := w.Controller(); !alive && !v.Decide(time.Now()).Done { // its controller was killed
			if err := EnsureRunning(env, dirs, w); err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); errors.Is(err, context.DeadlineExceeded) && o.Ends {
			return fmt.Errorf("%s is not rolled out in time", v.Name())
		} else if errors.Is(err, context.DeadlineExceeded) {
			return report.New(report.Failure, fmt.Sprintf("podrun get %s, podrun ps and podrun events show why", v.Name()), "timed out; the roll-out of %s continues", v.Name())
		} else if err != nil {
			return err
		}
	}
}

// pullFailure returns the failed pull of an image because of which a command stops waiting for a workload, or nil.
func pullFailure(v *resource.WorkloadInfo, failFast bool) error {
	for i := range v.Pods {
		p := &v.Pods[i]
		if v.State.Generation != v.Object.Revision || !follow.IsCurrent(v, p) || v.Status[p.Name] == nil {
			continue
		}
		if a := v.Status[p.Name].ImagePull; a != nil && a.Error != "" && (failFast || !a.Retryable) {
			return report.New(report.Failure, a.Hint, "%s keeps running: its pod %s waits: %s", v.Name(), p.Name, a.Error)
		}
	}
	return nil
}

// AwaitEnds waits for the pods and workloads of a run that other commands are removing. A workload without a controller
// is removed by this process.
func AwaitEnds(ctx context.Context, r *podup.Run) error {
	errs := make([]error, len(r.Workloads))
	var all sync.WaitGroup
	for i, w := range r.WorkloadRefs() {
		if old, err := w.Object(); err == nil && old.Deleting {
			all.Go(func() { errs[i] = RemoveWorkload(ctx, r.Env, r.Dirs, r.Launcher, w, podclient.StopOptions{}) })
		}
	}
	err := r.AwaitEnds(ctx)
	all.Wait()
	return errors.Join(append(errs, err)...)
}
