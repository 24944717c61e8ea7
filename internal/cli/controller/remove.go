package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// RemoveWorkload removes a workload with its pods. Its controller does that, or this process if there is
// none.
func RemoveWorkload(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, launcher cmdutil.PodLauncher, w store.Workload, how podclient.StopOptions) error {
	if err := MarkDeleting(env, dirs, []store.Workload{w}); err != nil {
		return err
	}
	how.Remove, how.Progress = launcher.Remove, nil           // the progress of all pods is reported here
	if v, err := resource.LoadWorkload(dirs, w); err == nil { // otherwise it is gone
		var pods sync.WaitGroup
		defer pods.Wait() // a partly removed pod is no longer listed with the workload
		for _, p := range v.StoredPods {
			defer podclient.ReportWaiting(env.ErrOut, "stopping", p, how.Grace, nil)()
			if how.Grace != nil {
				pods.Go(func() { _ = podclient.Stop(ctx, p, how) }) // the loop below checks the result
			}
		}
	}
	for {
		lock, err := w.Lock()
		o, gone := w.Object()
		made := gone == nil && !o.Deleting // another command has made a workload of this name since then
		switch {
		case errors.Is(err, store.ErrLocked):
		case err != nil:
			return err
		case made:
			return lock.Close()
		default:
			err := removeHere(ctx, env, dirs, launcher, w, how)
			if err == nil {
				err = w.Remove(uidOf(o)) // taking the lock has created the directory again
			}
			lock.Close()
			return err
		}
		if made || errors.Is(gone, fs.ErrNotExist) {
			return nil
		}
		if err := sleep.For(ctx, 4*podclient.PollTime); err != nil {
			return err
		}
	}
}

// removeHere is the controller that removes a workload.
func removeHere(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, launcher cmdutil.PodLauncher, w store.Workload, how podclient.StopOptions) error {
	c, err := New(env, dirs, launcher, []store.Workload{w})
	if err != nil {
		return err
	}
	defer c.Close()
	c.grace = how.Grace
	return c.Run(ctx, nil)
}

// uidOf returns the UID of an object, or "" if it is gone.
func uidOf(o *pod.Object) string {
	if o == nil {
		return ""
	}
	return o.UID
}

// MarkDeleting makes the controllers of workloads remove them.
func MarkDeleting(env *cmdutil.Env, dirs store.Dirs, list []store.Workload) error {
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

// RemoveAll removes workloads and pods, concurrently, and reports each.
func RemoveAll(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, workloads []store.Workload, pods []store.Pod, how podclient.StopOptions) error {
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	how.Remove = launcher.Remove
	names := make([]string, len(workloads)+len(pods))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, w := range workloads {
		names[i] = kindnames.Of(w.Kind) + "/" + w.Name
		all.Go(func() { errs[i] = RemoveWorkload(ctx, env, dirs, launcher, w, how) })
	}
	for i, p := range pods {
		i += len(workloads)
		names[i] = "pod/" + p.Name
		all.Go(func() {
			if errs[i] = podinit.EndStrays(dirs, p, env.ErrOut); errs[i] == nil {
				errs[i] = podclient.Down(ctx, dirs, p, how)
			}
		})
	}
	all.Wait()
	for i, name := range names {
		if errs[i] == nil {
			fmt.Fprintf(env.Out, "%s deleted\n", name)
		}
	}
	return errors.Join(errs...)
}
