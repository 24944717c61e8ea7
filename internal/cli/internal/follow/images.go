package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// AwaitImages waits for the images of a pod, and prints their progress. giveUp reports whether a failed
// attempt ends the wait.
func AwaitImages(ctx context.Context, env *cmdutil.Env, p *podup.Target, giveUp func(*pod.ImagePull) bool) error {
	bars := progress.New(env, "fetching")
	defer bars.End()
	var failed *pod.ImagePull // the failure that ends the wait
	reason, reported := "they are being pulled", 0
	err := podclient.WatchStatusAndLayers(ctx, p.Pod, func(st *pod.Status) bool {
		now := st.ImagePull
		switch {
		case now == nil || st.Deleting || st.Phase.Terminal():
			return true
		case now.Error == "":
			return false
		}
		if reason = now.Error; giveUp(now) {
			failed = now
			return true
		}
		if now.Attempts > reported {
			reported = now.Attempts
			reportPullRetry(env, p, st)
		}
		return false
	}, func(l wire.LayerProgress) {
		if l.Layer == "" { // the image is complete
			bars.Done(l.Image)
			return
		}
		bars.Update(image.Progress{Image: l.Image, Layer: l.Layer, Status: image.Status(l.Status), Done: l.Done, Total: l.Total})
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return report.New(report.Failure, "podrun events "+p.Pod.Name+" shows the progress", "not all images of pod %s were pulled within the --timeout: %s", p.Pod.Name, reason)
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return &image.Error{Reason: failed.Reason, Err: report.New(report.Failure, failed.Hint, "%s", failed.Error)}
	case err != nil && !errors.Is(err, podclient.ErrNotRunning):
		return err
	}
	p.AwaitsImages = false // the next watcher of the pod reads its new state
	return warnOfLocalImages(env, p)
}

// reportPullRetry prints why the images of a pod were not pulled, and when the next attempt is.
func reportPullRetry(env *cmdutil.Env, p *podup.Target, st *pod.Status) {
	report.Print(env.ErrOut, report.New(report.Failure, st.ImagePull.Hint, "%s", st.ImagePull.Error))
	pull.ForEachStatus(st, func(c *pod.ContainerStatus) {
		if w := c.State.Waiting; w != nil && !starting(w.Reason) {
			fmt.Fprintf(env.ErrOut, "podrun: pod %s: container %s waits: %s: back-off pulling image %s; next try in %v\n",
				p.Pod.Name, c.Name, image.ImagePullBackOff, report.Escape(c.Image), st.ImagePull.Next)
		}
	})
}

// warnOfLocalImages prints which local copies a puller has used since this command searched for the
// images.
func warnOfLocalImages(env *cmdutil.Env, p *podup.Target) error {
	events, err := p.Pod.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Reason == pull.LocalImageUsed && e.Last.After(p.LookedAt) {
			env.Warn(errors.New(e.Message))
		}
	}
	return nil
}
