package podup

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/store"
)

// replacePod starts a process that stops and removes the running pod, and starts this one in its place.
// That process finishes even if this command is killed. The replacement is recorded before it begins.
func (r *Run) replacePod(p *Target) error {
	text, err := manifest.Marshal(p.Object.Pod)
	if err != nil {
		return err
	}
	lock, err := r.Dirs.LockReplacement(p.Pod)
	if err != nil {
		return err
	}
	defer lock.Close() // the other process has its own descriptor
	// Taken before the record exists, so that no other command finishes the replacement. If another
	// process replaces the pod, it gives up when it finds the new record.
	if _, err := lock.TryExclusive(); err != nil {
		return err
	}
	record := &store.Replacement{ID: objects.NewUID(), Manifest: text, Images: p.images, RequireLimits: r.RequireLimits}
	if err := r.Dirs.WriteReplacement(p.Pod, record); err != nil {
		return err
	}
	p.closePorts() // the other process opens them
	err = r.Env.Deps.RunReplacer(r.Dirs, p.Pod, lock, r.Env.ErrOut, func() error { return FinishReplacement(context.Background(), r.Env, r.Dirs, p.Pod, lock) })
	if err != nil {
		if failed, rerr := r.Dirs.Replacement(p.Pod); rerr == nil && failed != nil && failed.ID == record.ID {
			p.failure = failed.Failed
		}
		return errors.Join(err, r.Dirs.RemoveReplacement(p.Pod)) // the user has seen the error
	}
	p.Plan, err = p.Pod.Plan()
	return err
}

// errWithdrawn is the error of a pod whose replacement was cancelled.
var errWithdrawn = errors.New("another podrun command has removed it")

// FinishReplacement carries out a recorded replacement of a pod, once it has the lock. It does nothing if there is
// no record.
func FinishReplacement(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, p store.Pod, lock *store.FileLock) error {
	if err := lock.Exclusive(); err != nil {
		return err
	}
	r, err := dirs.Replacement(p)
	if err != nil || r == nil {
		return err
	}
	err = replaceBy(ctx, env, dirs, p, r)
	return errors.Join(err, dirs.EndReplacement(p, r, err))
}

func replaceBy(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, p store.Pod, r *store.Replacement) error {
	objects, err := manifest.Load("pod "+p.Name, r.Manifest)
	if err != nil {
		return err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	run := &Run{Env: env, Dirs: dirs, Launcher: launcher, RequireLimits: r.RequireLimits, ReportTo: env.ErrOut}
	run.Targets = []*Target{{Object: &objects[0], Pod: p, Recreate: true, Pinned: r.Images, replacement: r.ID}}
	defer run.Release()
	if err := run.Prepare(ctx); err != nil {
		return err
	}
	return run.Start()
}

// checkWithdrawn returns an error if the replacement of a pod was cancelled.
func (r *Run) checkWithdrawn(p *Target) error {
	if p.replacement == "" {
		return nil
	}
	record, err := r.Dirs.Replacement(p.Pod)
	if err == nil && (record == nil || record.ID != p.replacement) {
		err = fmt.Errorf("cannot replace pod %s: %w", p.Pod.Name, errWithdrawn)
	}
	return err
}
