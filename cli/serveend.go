package cli

import (
	"context"
	"errors"
	"os"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// finish is the end of a service whose pods have ended by themselves.
func (s *service) finish() error {
	errs := make([]error, len(s.pods))
	for i, p := range s.pods {
		st, err := reading.StatusOf(p.place)
		if err != nil {
			errs[i] = err
			continue
		}
		tell := narrator{out: s.front.err, pod: p.place.Name}
		errs[i] = tell.failure(p.place, st)
		p.last = st
	}
	err := s.rule.verdict(s.pods, errs)
	if err == nil && !s.ready {
		s.tell(systemd.Ready) // a pod that has done its work was ready
	}
	s.tell(systemd.Stopping)
	return errors.Join(err, s.forget())
}

// end stops and removes the pods because of a signal; a second one stops them at once. With
// the machine they only stop.
// A unit that was told to end has not failed.
func (s *service) end(ctx context.Context, sig os.Signal, signals <-chan os.Signal) error {
	if s.goingDown(ctx) {
		s.tell(systemd.Stopping, systemd.Status("stopping, to go on later"), systemd.ExtendTimeout(stopTime(s.pods)))
		hurry, done := hurried(signals)
		defer done()
		errs := make([]error, len(s.pods))
		each(s.pods, func(i int, p *upPod) { errs[i] = s.suspend(ctx, p, hurry) })
		return errors.Join(append(errs, s.forget())...)
	}
	if err := s.stop(ctx, s.pods, signals); err != nil {
		return err
	}
	return s.forget()
}

// stop ends pods gracefully and removes them.
func (s *service) stop(ctx context.Context, list []*upPod, signals <-chan os.Signal) error {
	s.tell(systemd.Stopping, systemd.Status("stopping"), systemd.ExtendTimeout(stopTime(list)))
	hurry, done := hurried(signals)
	defer done()
	errs := make([]error, len(list))
	each(list, func(i int, p *upPod) { errs[i] = s.stopOne(ctx, p, hurry) })
	return errors.Join(errs...)
}

// stopOne is `podrun down`, and `podrun down --force` where that fails or once there is
// a hurry.
func (s *service) stopOne(ctx context.Context, p *upPod, hurry <-chan struct{}) error {
	if !p.place.HasRemains() {
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-hurry:
			cancel()
		case <-within.Done():
		}
	}()
	err := downPod(within, s.front.err, s.keeper.remove, p.place, ending{})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if within.Err() == nil {
		report.Print(s.front.err, err)
	}
	none := int64(0)
	return downPod(ctx, s.front.err, s.keeper.remove, p.place, ending{grace: &none, force: true})
}
