package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// haveImages pulls the images of the unit's pods, which are there meanwhile and wait for them. A
// unit lives as long as its pods, so it is their puller itself. A machine that has just started
// may have no network yet: that is no reason for a unit to fail.
func (s *service) haveImages(ctx context.Context, l *launch) (map[use]pod.Image, error) {
	pulling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, p := range l.pods {
		if p.awaits {
			if err := s.putPending(l, p, stop); err != nil {
				return nil, errors.Join(err, s.endPulls(ctx, l, false))
			}
		}
	}
	for attempt := 0; ; attempt++ {
		l.eachPending((*pendingPod).begin)
		found, err := l.ensure(pulling)
		if err == nil && pulling.Err() == nil {
			return found, nil
		}
		if pulling.Err() == nil && image.Reason(err) != image.InvalidImageName {
			err = s.again(pulling, l, attempt, err)
		}
		switch {
		case ctx.Err() != nil: // the unit is to end
			return nil, ctx.Err()
		case pulling.Err() != nil:
			return nil, errors.Join(report.New(report.Failure, "", "a pod of the unit was stopped by another podrun"), s.endPulls(ctx, l, true))
		case err != nil:
			return nil, errors.Join(err, s.endPulls(ctx, l, false))
		}
	}
}

// putPending puts a pod on record that waits for its images.
func (s *service) putPending(l *launch, p *upPod, stop context.CancelCauseFunc) (err error) {
	if p.replaces {
		if err := l.makeWay(p); err != nil {
			return err
		}
		p.replaces = false
	}
	if p.lock, err = l.lock(p); err != nil {
		return err
	}
	if err := l.build(p, nil); err != nil {
		return err
	}
	p.awaits = false // its images are asked for now
	if p.past == nil {
		p.past = &past{p.plan.UID, time.Now()}
	}
	if err := l.put(p, p.past.created); err != nil {
		return err
	}
	p.waiting, err = l.front.newPending(p.place, p.plan, stop)
	return err
}

// again publishes that an attempt has failed, and waits until the next is to be made.
func (s *service) again(ctx context.Context, l *launch, attempt int, err error) error {
	wait := s.front.pullBackOff(attempt)
	l.letGo()
	report.Print(s.front.err, fmt.Errorf("%w; next try in %v", err, wait))
	s.tell(systemd.Status(fmt.Sprintf("ImagePullBackOff, next try in %v: %v", wait, err)))
	s.giveTurn()
	for _, p := range l.pods {
		if p.waiting != nil {
			l.failed(p, err, wait)
			l.backOff(p)
		}
	}
	rest, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range l.pods {
		if p.waiting != nil {
			go func() {
				if asked, _ := p.waiting.pause(rest, wait); asked {
					cancel()
				}
			}()
		}
	}
	_ = remote.Pause(rest, wait) // the caller sees whether that was its end
	return s.takeTurn(ctx)
}

// endPulls ends the wait of pods that have not been started. With keep they stay on record, as
// when the machine goes down; else those are removed that no client has asked to stop.
func (s *service) endPulls(ctx context.Context, l *launch, keep bool) error {
	var errs []error
	if !slices.ContainsFunc(l.pods, func(p *upPod) bool { return p.waiting != nil }) {
		return nil
	}
	keep = keep || s.goingDown(ctx)
	for _, p := range l.pods {
		if p.waiting == nil {
			continue
		}
		if p.waiting.stopped() == nil {
			p.waiting.ask(&wire.StopRequest{Remove: true, Shutdown: keep})
		}
		errs = append(errs, l.endPull(p))
		p.lock.Close()
		p.waiting, p.lock = nil, nil
	}
	return errors.Join(errs...)
}
