package unit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
)

// PullImages pulls the images of the unit's pods, which are Pending meanwhile. A unit's process lives as
// long as its pods, so it is their puller. A machine that has just booted may have no network yet, which
// must not fail the unit.
func (s *MainProcess) PullImages(ctx context.Context, run *podup.Run) (map[podup.ImageRequest]pod.Image, error) {
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, p := range run.Targets {
		if p.AwaitsImages {
			if err := s.putPending(run, p, stop); err != nil {
				return nil, errors.Join(err, s.endPulls(ctx, run, false))
			}
		}
	}
	for attempt := 0; ; attempt++ {
		run.EachPending((*podup.PendingPod).Begin)
		found, err := run.Ensure(pulling)
		if err == nil && pulling.Err() == nil {
			return found, nil
		}
		if pulling.Err() == nil && image.Reason(err) != image.InvalidImageName {
			err = s.retryPulls(pulling, run, attempt, err)
		}
		switch {
		case ctx.Err() != nil: // the unit is being stopped
			return nil, ctx.Err()
		case pulling.Err() != nil:
			return nil, errors.Join(report.New(report.Failure, "", "a pod of the unit was stopped by another podrun command"), s.endPulls(ctx, run, true))
		case err != nil:
			return nil, errors.Join(err, s.endPulls(ctx, run, false))
		}
	}
}

// putPending records a pod that waits for its images.
func (s *MainProcess) putPending(run *podup.Run, p *podup.Target, stop context.CancelCauseFunc) (err error) {
	if p.Action == podup.Replace {
		if err := run.StopOld(p); err != nil {
			return err
		}
		p.Action = podup.Create
	}
	if p.Lock, err = run.Lock(p); err != nil {
		return err
	}
	if err := run.Build(p, nil); err != nil {
		return err
	}
	p.AwaitsImages = false // its images are requested now
	if p.Resumed == nil {
		p.Resumed = &podup.Resumption{UID: p.Plan.UID, Created: time.Now()}
	}
	if err := run.WriteRecord(p, p.Resumed.Created); err != nil {
		return err
	}
	p.Puller, err = podup.NewPending(run.Env, p.Pod, p.Plan, stop)
	return err
}

// retryPulls publishes a failed attempt, and waits until the next one is due.
func (s *MainProcess) retryPulls(ctx context.Context, run *podup.Run, attempt int, err error) error {
	wait := s.env.PullBackOff(attempt)
	run.ReleaseLease()
	report.Print(s.env.ErrOut, fmt.Errorf("%w; next try in %v", err, wait))
	s.notify(systemd.Status(fmt.Sprintf("ImagePullBackOff, next try in %v: %v", wait, err)))
	s.ReleaseStartSlot()
	for _, p := range run.Targets {
		if p.Puller != nil {
			run.Failed(p, err, wait)
			run.BackOff(p)
		}
	}
	rest, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range run.Targets {
		if p.Puller != nil {
			go func() {
				if requested, _ := p.Puller.Sleep(rest, wait); requested {
					cancel()
				}
			}()
		}
	}
	_ = sleep.For(rest, wait) // the caller checks whether ctx has ended
	return s.acquireStartSlot(ctx)
}

// endPulls ends the wait of pods that have not been started. With keep, as at shutdown, their records
// stay; otherwise it removes the pods whose stop no client has requested.
func (s *MainProcess) endPulls(ctx context.Context, run *podup.Run, keep bool) error {
	var errs []error
	if !slices.ContainsFunc(run.Targets, func(p *podup.Target) bool { return p.Puller != nil }) {
		return nil
	}
	keep = keep || s.ShuttingDown(ctx)
	for _, p := range run.Targets {
		if p.Puller == nil {
			continue
		}
		if p.Puller.StopRequested() == nil {
			p.Puller.RequestStop(&wire.StopRequest{Remove: true, Shutdown: keep})
		}
		errs = append(errs, run.EndPull(p))
		p.Lock.Close()
		p.Puller, p.Lock = nil, nil
	}
	return errors.Join(errs...)
}
