package podup

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest/podutil"
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
	inRun := map[store.Pod]*Target{}
	for _, p := range r.Targets {
		inRun[p.Pod] = p
		defer p.settle() // if the run ends before its turn
	}
	r.freeStartSlot(inRun)
	go func() {
		for sleep.For(ctx, stateInterval) == nil {
			if len(signals) > 0 {
				cancel(ErrInterrupted)
			}
		}
	}()
	return r.start(func(p *Target) error {
		defer p.settle()
		if list := r.after(p); len(list) > 0 && (p.Action == upplan.Create || p.Action == upplan.Replace) {
			end, err := r.awaitOthers(ctx, p, list, inRun)
			if err != nil {
				return err
			}
			defer end()
		}
		return r.carryOut(p)
	})
}

// StartsInOrder reports whether some pod waits for others before it starts.
func (r *Run) StartsInOrder() bool {
	return slices.ContainsFunc(r.Targets, func(p *Target) bool { return !p.RanBefore() && len(r.after(p)) > 0 })
}

// freeStartSlot makes a unit with a pod that waits for one of another unit release its start slot, which the
// other unit may need.
func (r *Run) freeStartSlot(inRun map[store.Pod]*Target) {
	if r.Unit != nil && slices.ContainsFunc(r.Targets, func(p *Target) bool {
		return !p.RanBefore() && slices.ContainsFunc(r.after(p), func(other podutil.StartAfter) bool {
			return inRun[r.Dirs.Pod(p.Pod.Namespace, other.Pod)] == nil
		})
	}) {
		r.Unit.ReleaseStartSlot()
	}
}
