package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod"
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
	shown := progress.New(u.env, "")
	defer shown.End()
	shown.Wait("waiting for pod %s to be ready", p.Name)
	reporter := follow.Reporter{Out: shown, Pod: p.Name}
	within, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	last, err := podclient.Follow(within, p, func(st *pod.Status) bool {
		reporter.Status(st)
		return st.Ready() || st.Phase.Terminal()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && within.Err() != nil:
		return fmt.Errorf("pod %s is not ready after %v", p.Name, u.timeout)
	case err != nil:
		return err
	}
	if !last.Phase.Terminal() && stable > 0 {
		shown.Wait("pod %s must stay ready for %v", p.Name, stable)
		restarts := restartsOf(last)
		stableCtx, cancel := context.WithTimeout(ctx, stable)
		defer cancel()
		podclient.Follow(stableCtx, p, func(st *pod.Status) bool { // until the time is over, or a pod fails
			last = st
			return st.Phase.Terminal() || !st.Ready() || restartsOf(st) != restarts
		})
		if err := ctx.Err(); err != nil {
			return err
		}
		if restartsOf(last) != restarts || !last.Ready() && last.Phase != pod.Succeeded {
			return fmt.Errorf("pod %s did not stay ready for %v%s", p.Name, stable, problemSuffix(last))
		}
	}
	if last.Phase == pod.Failed {
		return fmt.Errorf("pod %s has failed%s", p.Name, problemSuffix(last))
	}
	return nil
}

// problemSuffix returns the problem of the first failed container, after a colon, or "". It is printed
// because the pod is removed next, with all other traces of the problem.
func problemSuffix(st *pod.Status) string {
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			c := &list[i]
			if text := follow.Problem(c); text != "" {
				return ": " + text
			}
			if t := c.LastState.Terminated; t != nil {
				return ": container " + c.Name + " " + follow.ExitTextWithMessage(t)
			}
		}
	}
	return ""
}

func restartsOf(st *pod.Status) int {
	n := 0
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for _, c := range list {
			n += c.RestartCount
		}
	}
	return n
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
