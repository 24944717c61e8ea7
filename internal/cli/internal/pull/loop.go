// Package pull makes the images of pods available: the loop of attempts with its back-off, the record of the pulls for
// the pods' events, and the pods that wait meanwhile.
package pull

import (
	"context"
	"time"

	"github.com/podrun/podrun/image"
)

// Loop makes attempts to pull the images of pods until one succeeds.
type Loop struct {
	Try      func(context.Context) error         // makes an attempt
	Retry    func(error) bool                    // whether another attempt may succeed
	BackOff  func(attempt int) time.Duration     // the time from a failed attempt to the next
	Failed   func(err error, next time.Duration) // publishes a failed attempt
	Waits    func()                              // publishes that the pods wait for the next attempt
	Requests <-chan struct{}                     // receives requests for an attempt now
}

// shownFailure is how long a failed pull has the reason ErrImagePull before it becomes ImagePullBackOff. In
// the kubelet it keeps that reason until the next sync of the pod.
const shownFailure = time.Second

// Run makes attempts until one succeeds, one fails for good, or ctx ends. It returns the error of the last attempt, or
// of ctx if that ended between two.
func (l *Loop) Run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := l.Try(ctx)
		if err == nil || ctx.Err() != nil || !l.Retry(err) {
			return err
		}
		if l.sleep(ctx, 0) { // requested since this attempt began
			attempt = -1
			continue
		}
		next := l.BackOff(attempt)
		if image.Reason(err) == image.ErrImageNeverPull {
			next = l.BackOff(0) // no registry is involved
		}
		l.Failed(err, next)
		if l.wait(ctx, next) {
			attempt = -1
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// wait waits until the next attempt is due or requested, or ctx ends.
func (l *Loop) wait(ctx context.Context, next time.Duration) (requested bool) {
	shown := min(shownFailure, next/2)
	if l.sleep(ctx, shown) {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	l.Waits()
	return l.sleep(ctx, next-shown)
}

// sleep waits until the time has passed, an attempt is requested, or ctx ends.
func (l *Loop) sleep(ctx context.Context, d time.Duration) (requested bool) {
	select {
	case <-l.Requests:
		return true
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.Requests:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}
