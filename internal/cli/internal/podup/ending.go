package podup

import (
	"context"
	"errors"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
)

// AwaitEnds waits until the pods that other commands stop, remove or replace are gone, so that Prepare starts them
// again.
func (r *Run) AwaitEnds(ctx context.Context) error {
	errs := make([]error, len(r.Targets))
	ForEach(r.Targets, func(i int, p *Target) { errs[i] = r.awaitEnd(ctx, p) })
	return errors.Join(errs...)
}

func (r *Run) awaitEnd(ctx context.Context, p *Target) error {
	if !podclient.IsEnding(p.Pod) {
		return nil
	}
	if err := podclient.AwaitEnd(ctx, p.Pod, r.Env.GoneTime, r.Env.ErrOut); err != nil {
		return err
	}
	if record, err := r.Dirs.Replacement(p.Pod); err != nil || record == nil {
		return err
	}
	lock, err := r.Dirs.LockReplacement(p.Pod)
	if err != nil {
		return err
	}
	defer lock.Close()
	return lock.Exclusive() // the replacer holds it until the new pod runs
}
