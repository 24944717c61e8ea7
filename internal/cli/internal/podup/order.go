package podup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// ErrInterrupted is the error for pods that were not started because a signal has ended their wait for
// others. The signal can still be received.
var ErrInterrupted = errors.New("interrupted")

// after returns the pods that a pod is started after. The annotation is valid.
func (r *Run) after(p *Target) (list []podutil.StartAfter) {
	if value, ok := p.Object.Pod.Annotations[podutil.AnnotationStartAfter]; ok {
		list, _ = podutil.ParseStartAfter(value)
	}
	return list
}

// CheckOrder refuses pods that wait for each other, or for one that is neither in the files nor exists.
func (r *Run) CheckOrder() error {
	byPod := map[store.Pod]*Target{}
	for _, p := range r.Targets {
		byPod[p.Pod] = p
	}
	done := map[store.Pod]bool{}
	var errs []error
	for _, p := range r.Targets {
		for _, other := range r.after(p) {
			if of := r.Dirs.Pod(p.Pod.Namespace, other.Pod); byPod[of] == nil && !of.Exists() {
				errs = append(errs, report.New(report.Usage, "", "%s: pod %s starts after pod %s (%s), which is neither in the files nor exists",
					resource.Location(p.Object), p.Pod.Name, other.Pod, podutil.AnnotationStartAfter))
			}
		}
		if way := r.circle(byPod, done, p, nil); way != nil {
			return report.New(report.Usage, "", "%s: pods start after each other (%s): %s",
				resource.Location(p.Object), podutil.AnnotationStartAfter, strings.Join(way, ", "))
		}
	}
	return errors.Join(errs...)
}

// circle returns the names of pods that wait for each other, or nil. done has the pods that were visited without
// finding a circle.
func (r *Run) circle(byPod map[store.Pod]*Target, done map[store.Pod]bool, p *Target, way []string) []string {
	if done[p.Pod] {
		return nil
	}
	if slices.Contains(way, p.Pod.Name) {
		return append(way, p.Pod.Name)
	}
	for _, other := range r.after(p) {
		if next := byPod[r.Dirs.Pod(p.Pod.Namespace, other.Pod)]; next != nil {
			if found := r.circle(byPod, done, next, append(slices.Clone(way), p.Pod.Name)); found != nil {
				return found
			}
		}
	}
	done[p.Pod] = true
	return nil
}

// StartInOrder is Start, except that a pod that is created waits for the pods that its annotation names. A
// signal ends the waiting, and stays in signals.
func (r *Run) StartInOrder(ctx context.Context, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := map[store.Pod]chan struct{}{} // closed when a pod was started or not
	for _, p := range r.Targets {
		ended[p.Pod] = make(chan struct{})
	}
	r.freeStartSlot(ended)
	go func() {
		for sleep.For(ctx, stateInterval) == nil {
			if len(signals) > 0 {
				cancel(ErrInterrupted)
			}
		}
	}()
	return r.start(func(p *Target) error {
		defer close(ended[p.Pod])
		if p.Action == Create || p.Action == Replace {
			for _, other := range r.after(p) {
				if err := r.awaitState(ctx, p, other, ended); err != nil {
					return err
				}
			}
		}
		return r.carryOut(p)
	})
}

// freeStartSlot makes a unit with a pod that waits for one of another unit release its start slot, which the
// other unit may need.
func (r *Run) freeStartSlot(ended map[store.Pod]chan struct{}) {
	if r.Unit != nil && slices.ContainsFunc(r.Targets, func(p *Target) bool {
		return !p.RanBefore() && slices.ContainsFunc(r.after(p), func(other podutil.StartAfter) bool {
			return ended[r.Dirs.Pod(p.Pod.Namespace, other.Pod)] == nil
		})
	}) {
		r.Unit.ReleaseStartSlot()
	}
}

// stateInterval is how often the state of a pod is read while another waits for it.
const stateInterval = 10 * podclient.PollTime

// awaitState waits until another pod has reached a state.
func (r *Run) awaitState(ctx context.Context, p *Target, other podutil.StartAfter, ended map[store.Pod]chan struct{}) error {
	of := r.Dirs.Pod(p.Pod.Namespace, other.Pod)
	notStarted := func(why string, err error) error {
		hint := fmt.Sprintf("podrun describe %s and podrun logs %[1]s show why", other.Pod)
		return report.New(report.Failure, hint, "pod %s is not started: pod %s %s: %w", p.Pod.Name, other.Pod, why, err)
	}
	if start := ended[of]; start != nil {
		select {
		case <-start:
		case <-ctx.Done():
			return notStarted("is not started", context.Cause(ctx))
		}
	}
	for reported := false; ; reported = true {
		if !of.Exists() {
			return notStarted("is not started", errors.New("it does not exist"))
		}
		st, err := podview.StatusOf(of)
		switch {
		case err != nil:
			return notStarted("is not "+other.State, err)
		case ended[of] == nil && !of.Alive() && st.Phase != pod.Succeeded && podview.Rebooted(of): // its unit has not started it yet
		case hasReached(st, other.State):
			return nil
		case st.Phase.Terminal():
			return notStarted("is not "+other.State, fmt.Errorf("it has ended with the phase %s", st.Phase))
		}
		if !reported {
			fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s starts when pod %s is %s\n", p.Pod.Name, other.Pod, other.State)
		}
		if sleep.For(ctx, stateInterval) != nil {
			return notStarted("is not "+other.State, context.Cause(ctx))
		}
	}
}

// hasReached reports whether a pod has reached a state of the annotation.
func hasReached(st *pod.Status, state string) bool {
	switch state {
	case podutil.AfterReady:
		return st.Ready()
	case podutil.AfterSucceeded:
		return st.Phase == pod.Succeeded
	}
	return st.AllStarted() || st.Phase.Terminal()
}
