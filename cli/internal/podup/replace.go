package podup

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
)

// replacePod starts a process that stops and removes the running pod, and starts this one in its place.
// That process finishes even if this command is killed. The replacement is recorded before it begins.
func (l *Run) replacePod(p *Target) error {
	text, err := manifest.Marshal(p.Object.Pod)
	if err != nil {
		return err
	}
	lock, err := l.Dirs.LockReplacement(p.Pod)
	if err != nil {
		return err
	}
	defer lock.Close() // the other process has its own descriptor
	// Taken before the record exists, so that no other command finishes the replacement. If another
	// process replaces the pod, it gives up when it finds the new record.
	if _, err := lock.TryExclusive(); err != nil {
		return err
	}
	r := &store.Replacement{ID: objects.NewUID(), Manifest: text, Images: p.images, RequireLimits: l.RequireLimits}
	if err := l.Dirs.WriteReplacement(p.Pod, r); err != nil {
		return err
	}
	p.closePorts() // the other process opens them
	err = l.Env.Deps.RunReplacer(l.Dirs, p.Pod, lock, l.Env.ErrOut, func() error { return FinishReplacement(context.Background(), l.Env, l.Dirs, p.Pod, lock) })
	if err != nil {
		return errors.Join(err, l.Dirs.RemoveReplacement(p.Pod)) // the user has seen the error
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
	l := &Run{Env: env, Dirs: dirs, Launcher: launcher, RequireLimits: r.RequireLimits, ReportTo: env.ErrOut}
	l.Targets = []*Target{{Object: &objects[0], Pod: p, Recreate: true, Pinned: r.Images, replacement: r.ID}}
	defer l.Release()
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	return l.Start()
}

// checkWithdrawn returns an error if the replacement of a pod was cancelled.
func (l *Run) checkWithdrawn(p *Target) error {
	if p.replacement == "" {
		return nil
	}
	r, err := l.Dirs.Replacement(p.Pod)
	if err == nil && (r == nil || r.ID != p.replacement) {
		err = fmt.Errorf("cannot replace pod %s: %w", p.Pod.Name, errWithdrawn)
	}
	return err
}
