package podup

import (
	"context"
	"errors"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// pullForUnit pulls the images of a unit's pods, which are Pending meanwhile. A unit's process lives as
// long as its pods, so it is their puller. A machine that has just booted may have no network yet, which
// must not fail the unit.
func (r *Run) pullForUnit(ctx context.Context) (found map[pull.Request]pod.Image, err error) {
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	loop := r.pullLoop(func(err error) bool { return image.Reason(err) != image.InvalidImageName }, func(ctx context.Context) (err error) {
		if err := r.Unit.AcquireStartSlot(ctx); err != nil {
			return err
		}
		found, err = r.Ensure(ctx)
		return err
	})
	for _, p := range r.Targets {
		if p.AwaitsImages {
			if err := r.putPending(p, stop); err != nil {
				return nil, errors.Join(err, r.EndPulls(ctx, false))
			}
		}
	}
	err = loop.Run(pulling)
	switch {
	case ctx.Err() != nil: // the unit is being stopped
		return nil, ctx.Err()
	case pulling.Err() != nil:
		return nil, errors.Join(report.New(report.Failure, "", "a pod of the unit was stopped by another podrun command"), r.EndPulls(ctx, true))
	case err != nil:
		return nil, errors.Join(err, r.EndPulls(ctx, false))
	}
	return found, nil
}

// putPending records a pod that waits for its images.
func (r *Run) putPending(p *Target, stop context.CancelCauseFunc) (err error) {
	if p.Action == upplan.Replace {
		if err := r.StopOld(p); err != nil {
			return err
		}
		p.Action = upplan.Create
	}
	if p.Lock, err = r.Lock(p); err != nil {
		return err
	}
	if err := r.Build(p, nil); err != nil {
		return err
	}
	p.AwaitsImages = false // its images are requested now
	if p.Resumed == nil {
		p.Resumed = &upplan.Resumption{UID: p.Plan.UID, Created: time.Now()}
	}
	if err := r.WriteRecord(p, p.Resumed.Created); err != nil {
		return err
	}
	p.Pending, err = pull.NewPending(r.Env, p.Pod, p.Plan, stop, r.pullRequests)
	return err
}

// EndPulls ends the wait of the unit's pods that have not been started. With keep, as at shutdown, their records
// stay; otherwise it removes the pods whose stop no client has requested.
func (r *Run) EndPulls(ctx context.Context, keep bool) error {
	var errs []error
	if !r.isPuller() {
		return nil
	}
	keep = keep || r.Unit.ShuttingDown(ctx)
	for _, p := range r.Targets {
		if p.Pending == nil {
			continue
		}
		if p.Pending.StopRequested() == nil {
			p.Pending.RequestStop(&wire.StopRequest{Remove: true, Shutdown: keep})
		}
		errs = append(errs, r.EndPull(p))
		p.Lock.Close()
		p.Pending, p.Lock = nil, nil
	}
	return errors.Join(errs...)
}
