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
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// The kubelet's back-off of image pulls (pkg/kubelet: MaxContainerBackOff, imageBackOff).
const (
	firstPullBackOff = 10 * time.Second
	lastPullBackOff  = 5 * time.Minute
)

// pullBackOff is how long to wait after so many failed attempts and one more.
func pullBackOff(attempt int) time.Duration {
	return min(firstPullBackOff<<min(attempt, 10), lastPullBackOff)
}

// errTooLate is the cause of a launch that has had all of its time.
var errTooLate = errors.New("the time is over")

// haveImages has every image on the machine. A network or a registry that does not answer
// is waited for, as by the kubelet; what will not be better by itself is an error at once.
func (l *launch) haveImages(ctx context.Context) (map[use]pod.Image, error) {
	if l.background || l.service != nil && len(l.pods) > 0 {
		found, all, err := l.imagesHere(ctx)
		waits := l.service != nil && slices.ContainsFunc(l.pods, func(p *upPod) bool { return p.awaits })
		if err != nil || all && !waits {
			return found, err
		}
	}
	if l.service != nil {
		return l.service.haveImages(ctx, l)
	}
	for attempt := 0; ; attempt++ {
		found, err := l.ensure(ctx)
		switch {
		case err == nil:
			return found, nil
		case l.waits:
			err = l.again(ctx, attempt, err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// again waits until the images are to be tried again, or gives back the error that is none
// to wait for.
func (l *launch) again(ctx context.Context, attempt int, err error) error {
	if context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	if ctx.Err() != nil || !l.fetches.mayPass() {
		return err
	}
	wait := l.front.pullBackOff(attempt)
	l.release()
	report.Print(l.front.err, err)
	for _, p := range l.pods {
		for _, i := range manifest.Images(p.object.Pod) {
			if l.fetches.failed(p.use(i)) {
				fmt.Fprintf(l.front.err, "podrun: pod %s: %s waits: ImagePullBackOff: back-off pulling image %s; next try in %v\n",
					p.place.Name, user(i), report.Escape(i.Reference), wait)
			}
		}
	}
	l.fetches.backOff()
	if remote.Pause(ctx, wait) != nil && context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	return ctx.Err()
}

func tooLate(err error) error {
	return report.New(report.Failure, "podrun up again goes on where the pull was", "not all images came within the --timeout: %w", err)
}

// user is what needs an image.
func user(i manifest.ImageUse) string {
	if i.Volume != "" {
		return "volume " + i.Volume
	}
	return "container " + i.Container
}

// within gives up what do does after a time, if there is one.
func within(timeout time.Duration, do func(context.Context) error) func(context.Context) error {
	if timeout <= 0 {
		return do
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTooLate)
		defer cancel()
		return do(ctx)
	}
}

// mayPass says whether all that failed may be better by itself.
func (f *fetches) mayPass() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	any := false
	for _, got := range f.byUse {
		if got.err != nil {
			if any = true; !image.IsTransient(got.err) {
				return false
			}
		}
	}
	return any
}

// failed says whether an image could not be had just now.
func (f *fetches) failed(u use) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUse[u] != nil && f.byUse[u].err != nil
}

// backOff notes of all that failed that they wait, in the kubelet's words
// (pkg/kubelet/images/image_manager.go): pods have it among their events once there are
// any.
func (f *fetches) backOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byUse {
		if got.err == nil {
			continue
		}
		got.past = append(got.past,
			pod.Event{Type: pod.Normal, Reason: "Pulling", Last: got.began, Message: fmt.Sprintf("Pulling image %q", u.ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: fmt.Sprintf("Failed to pull image %q: %v", u.ref, got.err)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ErrImagePull},
			pod.Event{Type: pod.Normal, Reason: "BackOff", Last: got.ended, Message: fmt.Sprintf("Back-off pulling image %q", u.ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ImagePullBackOff})
		if over := len(got.past) - mostPast; over > 0 {
			got.past = got.past[over:]
		}
	}
}

// mostPast is how many events of failed attempts are kept for an image.
const mostPast = 50
