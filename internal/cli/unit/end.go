package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podstop"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// finish ends the unit's process when all of its pods have ended, and returns the error for its exit code.
func (s *MainProcess) finish() error {
	errs := make([]error, len(s.Pods))
	for i, p := range s.Pods {
		st, err := podview.StatusOf(p.Pod)
		if err != nil {
			errs[i] = err
			continue
		}
		reporter := follow.Reporter{Out: s.env.ErrOut, Pod: p.Pod.Name}
		errs[i] = reporter.Failure(p.Pod, st)
		p.Last = st
	}
	err := s.rule.Result(s.Pods, errs)
	if err == nil && !s.ready {
		s.notify(systemd.Ready) // a pod that has succeeded counts as ready
	}
	s.notify(systemd.Stopping)
	return errors.Join(err, s.ForgetPods())
}

// end stops and removes the pods after a signal; a second signal kills them. At shutdown of the machine
// the pods are only stopped. A requested stop is no failure of the unit.
func (s *MainProcess) end(ctx context.Context) error {
	if s.ShuttingDown(ctx) {
		s.notify(systemd.Stopping, systemd.Status("stopping, to be resumed later"), systemd.ExtendTimeout(stopTimeout(s.Pods)))
		killNow, done := onSignal(s.Signals)
		defer done()
		errs := make([]error, len(s.Pods))
		podup.ForEach(s.Pods, func(i int, p *podup.Target) { errs[i] = s.ShutdownPod(ctx, p, killNow) })
		return errors.Join(append(errs, s.ForgetPods())...)
	}
	if err := s.stop(ctx, s.Pods); err != nil {
		return err
	}
	return s.ForgetPods()
}

// stop stops pods gracefully and removes them.
func (s *MainProcess) stop(ctx context.Context, list []*podup.Target) error {
	s.notify(systemd.Stopping, systemd.Status("stopping"), systemd.ExtendTimeout(stopTimeout(list)))
	killNow, done := onSignal(s.Signals)
	defer done()
	errs := make([]error, len(list))
	podup.ForEach(list, func(i int, p *podup.Target) { errs[i] = s.StopPod(ctx, p, killNow) })
	return errors.Join(errs...)
}

// StopPod does what `podrun down` does, and `podrun down --force` if that fails or killNow is closed.
func (s *MainProcess) StopPod(ctx context.Context, p *podup.Target, killNow <-chan struct{}) error {
	if !p.Pod.HasRemains() {
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-killNow:
			cancel()
		case <-within.Done():
		}
	}()
	err := podclient.Stop(within, p.Pod, podclient.StopOptions{Remove: s.launcher.Remove})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if within.Err() == nil {
		report.Print(s.env.ErrOut, err)
	}
	force := podstop.Force(s.env.ErrOut)
	force.Remove = s.launcher.Remove
	return podclient.Stop(ctx, p.Pod, force)
}

// ShuttingDown is cmdutil.ShuttingDown. The unit's pods then end as the kubelet's do in a shutdown of the node, and
// resume when the unit is started again.
func (s *MainProcess) ShuttingDown(ctx context.Context) bool {
	return cmdutil.ShuttingDown(ctx, s.env.ErrOut)
}

// ShutdownPod stops a pod gracefully and keeps the data that it resumes with. When killNow is closed it
// kills the pod.
func (s *MainProcess) ShutdownPod(ctx context.Context, p *podup.Target, killNow <-chan struct{}) error {
	return podclient.Shutdown(ctx, p.Pod, killNow)
}

// onSignal returns a channel that is closed at a signal, until done is called.
func onSignal[T any](signals <-chan T) (killNow <-chan struct{}, done func()) {
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

// stopTimeout returns how long a unit's pods may take to stop.
func stopTimeout(list []*podup.Target) time.Duration {
	var grace int64
	for _, p := range list {
		grace = max(grace, p.Plan.GraceSeconds)
	}
	return time.Duration(grace)*time.Second + podclient.StopMargin + podclient.GoneTime
}

// ReplaceUnresponsive replaces the supervisors that do not answer, because of which systemd has ended the
// main process.
func (s *MainProcess) ReplaceUnresponsive(ctx context.Context) error {
	errs := make([]error, len(s.Pods))
	podup.ForEach(s.Pods, func(i int, p *podup.Target) {
		within, cancel := context.WithTimeout(ctx, takeOverTime)
		defer cancel()
		err := s.attachOnce(within, p)
		if err == nil || errors.Is(err, podclient.ErrNotRunning) {
			return
		}
		fmt.Fprintf(s.env.ErrOut, "podrun: the supervisor of pod %s does not answer: it is replaced\n", p.Pod.Name)
		errs[i] = podstop.RestartSupervisor(p.Pod)
	})
	return errors.Join(errs...)
}

// StopRequested reports whether the unit is being stopped. It returns false if that is unknown, so that
// the pods keep running.
func StopRequested(ctx context.Context, env *cmdutil.Env, unit systemd.Unit) bool {
	manager, ok := delegation.FindManager()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, systemd.AnswerTime)
	defer cancel()
	requested, err := unit.StopRequested(ctx, manager)
	if err != nil {
		report.Print(env.ErrOut, err)
	}
	return requested
}
