package podup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// DependencyError is the error of a pod that was not started because another pod did not reach its state.
type DependencyError struct{ error }

func (e *DependencyError) Unwrap() error { return e.error }

// awaitOthers waits until the pods that a pod starts after have reached their states. Meanwhile a new pod is
// recorded as Pending. end releases its lock once it has started.
func (r *Run) awaitOthers(ctx context.Context, p *Target, list []podutil.StartAfter, inRun map[store.Pod]*Target) (end func(), err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end = func() {}
	if p.Action == upplan.Create {
		if end, err = r.recordWaiting(p, list, stop); err != nil {
			return nil, err
		}
	}
	err = r.awaitStates(ctx, p, list, inRun)
	if p.Pending == nil {
		return end, err
	}
	if err != nil {
		if errors.Is(err, pull.ErrStopped) {
			err = report.New(report.Failure, "", "pod %s is not started: it was stopped by another podrun command", p.Pod.Name)
		}
		p.Pending.RequestStop(&wire.StopRequest{Remove: p.Resumed == nil, Shutdown: p.Resumed != nil})
		err = errors.Join(err, r.EndPull(p))
		end()
	}
	p.Pending.Close()
	p.Pending = nil
	return end, err
}

// recordWaiting records a new pod as Pending. release releases the lock that it takes.
func (r *Run) recordWaiting(p *Target, list []podutil.StartAfter, stop context.CancelCauseFunc) (release func(), err error) {
	release = func() {}
	if p.Lock == nil {
		if p.Lock, err = r.Lock(p); errors.Is(err, store.ErrLocked) {
			return nil, busyError(p.Pod)
		} else if err != nil {
			return nil, err
		}
		release = func() {
			p.Lock.Close()
			p.Lock = nil
		}
	}
	created := time.Now()
	if p.Resumed != nil {
		created = p.Resumed.Created
	}
	if err = p.Lock.Truncate(0); err == nil { // removes what a lost pod init has written
		err = r.WriteRecord(p, created)
	}
	if err == nil {
		p.Pending, err = pull.NewWaiting(r.Env, p.Pod, p.Plan, list, stop)
	}
	if err != nil {
		if p.Resumed == nil {
			err = errors.Join(err, r.Launcher.Remove(p.Pod))
		}
		release()
		return nil, fmt.Errorf("record pod %s: %w", p.Pod.Name, err)
	}
	return release, nil
}

// awaitStates waits for all pods of a list at once. The first that fails ends the wait.
func (r *Run) awaitStates(ctx context.Context, p *Target, list []podutil.StartAfter, inRun map[store.Pod]*Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(list))
	for _, other := range list {
		go func() { results <- r.awaitState(ctx, p, other, inRun[r.Dirs.Pod(p.Pod.Namespace, other.Pod)]) }()
	}
	for range list {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

// stateInterval is how often the state of a pod is read while another waits for it.
const stateInterval = 10 * podclient.PollTime

// awaitState waits until another pod has reached a state. target is that pod if this run starts it, or nil.
func (r *Run) awaitState(ctx context.Context, p *Target, other podutil.StartAfter, target *Target) error {
	of := r.Dirs.Pod(p.Pod.Namespace, other.Pod)
	notStarted := func(reason string, err error) error {
		hint := fmt.Sprintf("podrun describe %s and podrun logs %[1]s show why", other.Pod)
		err = report.New(report.Failure, hint, "pod %s is not started: pod %s %s: %w", p.Pod.Name, other.Pod, reason, err)
		if errors.Is(err, ErrInterrupted) {
			return err
		}
		return &DependencyError{err}
	}
	if target != nil {
		select {
		case <-target.settled:
		case <-ctx.Done():
			return notStarted("is not started", context.Cause(ctx))
		}
	}
	for began, reported := time.Now(), false; ; reported = true {
		if !of.Exists() {
			return notStarted("is not started", errors.New("it does not exist"))
		}
		st, err := podview.StatusOf(of)
		if err != nil {
			return notStarted("is not "+other.State, err)
		}
		if target != nil || of.Alive() || st.Phase == pod.Succeeded || !podview.Rebooted(of) { // otherwise its unit has not started it yet
			reached, failed := stateReached(st, other, time.Since(began))
			switch {
			case reached:
				return nil
			case failed != nil:
				return r.withLastLines(of, failed.container, notStarted("is not "+other.State, failed.withCause(of)))
			}
		}
		if !reported {
			fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s starts when pod %s is %s\n", p.Pod.Name, other.Pod, other.State)
		}
		if sleep.For(ctx, stateInterval) != nil {
			return notStarted("is not "+other.State, context.Cause(ctx))
		}
	}
}

// withLastLines adds the last output of a container to an error, once for all pods that wait for it.
func (r *Run) withLastLines(p store.Pod, container string, err error) error {
	if _, again := r.linesShown.LoadOrStore(p, true); again || container == "" {
		return err
	}
	return &DependencyError{podview.WithLastLines(p, container, err)}
}

// stateFailure is why a pod does not reach a state.
type stateFailure struct {
	text      string
	container string // whose end or health is the cause; "": none
	unhealthy bool
}

// withCause returns the failure as an error, with what the last probe of an unhealthy container has written.
func (f *stateFailure) withCause(p store.Pod) error {
	events, err := p.Events()
	if f.unhealthy && err == nil {
		for i := len(events) - 1; i >= 0; i-- {
			if e := events[i]; e.Container == f.container && e.Reason == "Unhealthy" {
				return fmt.Errorf("%s: %s", f.text, strings.TrimRight(e.Message, ": \n")) // it may have written nothing
			}
		}
	}
	return errors.New(f.text)
}

// stateReached reports whether a pod has reached a state, or why it never does. waited is how long another pod has
// waited for it.
func stateReached(st *pod.Status, other podutil.StartAfter, waited time.Duration) (reached bool, failed *stateFailure) {
	switch other.State {
	case podutil.AfterRunning:
		reached = st.AllStarted() || st.Phase.Terminal()
	case podutil.AfterSucceeded:
		reached = st.Phase == pod.Succeeded
	default:
		reached = st.Ready()
	}
	switch {
	case reached:
		return true, nil
	case st.Phase.Terminal():
		failed = &stateFailure{text: fmt.Sprintf("it has ended with the phase %s", st.Phase)}
		if c := podview.FailedContainer(st); c != nil {
			failed.container = c.Name
			failed.text = fmt.Sprintf("container %s %s", c.Name, podview.ExitText(c.State.Terminated))
		}
		return false, failed
	case st.ImagePull != nil && st.ImagePull.Error != "" && !st.ImagePull.Retryable:
		return false, &stateFailure{text: st.ImagePull.Error}
	case other.State == podutil.AfterHealthy:
		return false, unhealthy(st, waited >= other.Grace)
	}
	return false, nil
}

// unhealthy returns the failure of a pod that does not become healthy: a container that has ended, or crashes
// again and again, or fails its health check (compose: pkg/compose/convergence.go isServiceHealthy).
func unhealthy(st *pod.Status, graceOver bool) *stateFailure {
	for i := range st.Containers {
		c := &st.Containers[i]
		t := c.State.Terminated
		if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			t = c.LastState.Terminated
		}
		switch {
		case t != nil:
			return &stateFailure{text: fmt.Sprintf("container %s %s", c.Name, podview.ExitText(t)), container: c.Name}
		case c.Unhealthy && graceOver:
			return &stateFailure{text: fmt.Sprintf("container %s is unhealthy", c.Name), container: c.Name, unhealthy: true}
		}
	}
	return nil
}
