package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
)

// goingDown says whether the machine, or the user's manager, is being stopped: then the
// unit's pods end as the kubelet's do in a shutdown of the node, and go on when the unit is
// started again. Where the manager does not say, as one that is busy with ending everything, it
// is taken to be so: what pods have written is not removed for want of an answer.
func (s *service) goingDown(ctx context.Context) bool {
	manager, ok := delegation.FindManager()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	going, err := systemd.IsStopping(ctx, manager)
	if err != nil {
		report.Print(s.front.err, report.New(report.Failure, "the pods end as with the machine, and keep their files; podrun down removes them", "ask whether the machine goes down: %w", err))
		return true
	}
	return going
}

// suspend ends pods gracefully and leaves what they go on with. After hurry is closed it
// ends them at once.
func (s *service) suspend(ctx context.Context, p *upPod, hurry <-chan struct{}) error {
	if !p.place.Alive() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, remote.Patience(p.place, nil))
	defer cancel()
	ask := func(grace *int64) error {
		return remote.Persist(within, p.place, func() error {
			return remote.StopOnce(within, p.place, wire.StopRequest{GraceSeconds: grace, Shutdown: true})
		})
	}
	go func() {
		select {
		case <-hurry:
			_ = ask(new(int64)) // the first request tells what became of it
		case <-within.Done():
		}
	}()
	err := ask(nil)
	if err != nil && !errors.Is(err, remote.ErrNotRunning) {
		return fmt.Errorf("end pod %s: %w", p.place.Name, err)
	}
	return remote.WaitGone(ctx, p.place)
}

// hurried is closed at a signal, until done is called.
func hurried[T any](signals <-chan T) (hurry <-chan struct{}, done func()) {
	closed, over := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-signals:
			close(closed)
		case <-over:
		}
	}()
	return closed, func() { close(over) }
}

// stopTime is how long a unit's pods may take to end.
func stopTime(list []*upPod) time.Duration {
	var grace int64
	for _, p := range list {
		grace = max(grace, p.plan.GraceSeconds)
	}
	return time.Duration(grace)*time.Second + remote.Slack + remote.GoneTime
}
