package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// watch waits until the pods are ready, and checks that they stay ready for the time stable.
func (u *updater) watch(ctx context.Context, g *updateGroup, stable time.Duration) error {
	for _, p := range g.pods {
		if err := u.watchPod(ctx, p.pod, stable); err != nil {
			return err
		}
	}
	return nil
}

func (u *updater) watchPod(ctx context.Context, p store.Pod, stable time.Duration) error {
	last, err := follow.AwaitReady(ctx, u.env, &podup.Target{Pod: p}, u.timeout)
	if err != nil {
		return err
	}
	return follow.StaysReady(ctx, u.env, p, last, stable)
}

// undo goes back to the previous images, because of cause.
func (u *updater) undo(ctx context.Context, g *updateGroup, cause error) error {
	fmt.Fprintf(u.env.ErrOut, "podrun: %s: rolling back\n", report.Escape(cause.Error()))
	u.timeout = max(u.timeout, updateTime) // a short time-out applies to the new images only
	var errs []error
	untouched := g.unit == ""
	for _, p := range g.pods {
		now := runningImages(p.pod)
		for _, i := range p.images {
			untouched = untouched && now[i.ref] == i.from && p.pod.Alive()
		}
		if u.rollback { // the previous images are the newer ones
			errs = append(errs, u.end(p, forRecord(p.images, true), store.UpdateTagging, store.UpdateDone))
			continue
		}
		errs = append(errs, u.end(p, forRecord(p.images, false), store.UpdateUntagging, store.UpdateUndone))
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(cause, err)
	}
	names := g.pods[0].pod.Name
	if !untouched {
		err := u.replace(ctx, g, false)
		if err == nil {
			err = u.watch(ctx, g, 0)
		}
		if err != nil {
			return report.New(report.Failure, "podrun ps, podrun events and podrun logs "+names+" show why", "%w; rollback failed: %w", cause, err)
		}
	}
	for _, p := range g.pods {
		if err := u.forget(p); err != nil {
			return errors.Join(cause, err)
		}
	}
	again := "podrun update " + names
	if u.rollback {
		again += " --rollback"
	}
	return report.New(report.Failure, "podrun logs -f "+names+" in another terminal shows output of the new images until their pod is removed; "+again+" tries again", "%w: the pod was rolled back to its former images", cause)
}

// forget removes the manifest from a pod's update record, because the pod exists again.
func (u *updater) forget(p *updatedPod) error {
	r, err := u.dirs.Update(p.pod)
	if err != nil || r == nil || r.Manifest == nil {
		return err
	}
	r.Manifest = nil
	return u.dirs.WriteUpdate(p.pod, r)
}
