package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// standIn is in the place of an image that is not here yet, for a Plan by which nothing runs.
var standIn = pod.Image{Entrypoint: []string{"unknown"}, User: "65534"}

// imagesHere looks which images are on the machine. Pods for which a registry has to be asked
// wait for a puller. all says that nobody else has to be waited for.
func (l *launch) imagesHere(ctx context.Context) (found map[use]pod.Image, all bool, err error) {
	uses, began := l.uses(), time.Now()
	found, failed, err := l.lookFor(ctx, uses, true)
	if err != nil {
		return nil, false, err
	}
	lacking := map[use]bool{}
	for u, err := range failed {
		if !errors.Is(err, image.ErrRegistryNeeded) && image.Reason(err) != image.ErrImageNeverPull {
			return nil, false, err
		}
		lacking[u] = true
	}
	for _, p := range slices.Concat(l.pods, l.samples) {
		p.looked = began
		p.awaits = p.awaits || !p.running && (!p.replaces || p.pending) && slices.ContainsFunc(manifest.Images(p.object.Pod), func(i manifest.ImageUse) bool { return lacking[p.use(i)] })
	}
	return found, !slices.ContainsFunc(l.uses(), func(u use) bool { return lacking[u] }), nil
}

// startPull puts a pod on record that waits for its images, and starts its puller.
func (l *launch) startPull(p *upPod, lock *os.File, created time.Time) (err error) {
	if err := lock.Truncate(0); err != nil { // of a keeper that was lost
		return fmt.Errorf("start the pull of pod %s: %w", p.place.Name, err)
	}
	if err := l.put(p, created); err != nil {
		return err
	}
	st := pendingStatus(p.plan)
	if err := p.place.WriteStatus(&st); err != nil {
		return err
	}
	wishes := pullWishes{TLSVerify: l.pull.TLSVerify, AuthFile: l.pull.AuthFile, Pull: p.pull, RequireLimits: l.requireLimits}
	if wishes.AuthFile != "" {
		if wishes.AuthFile, err = filepath.Abs(wishes.AuthFile); err != nil {
			return fmt.Errorf("find the file of logins: %w", err)
		}
	}
	p.closePorts() // they are opened again when the pod starts
	return l.front.rooms.pull(l.dirs, p.place, wishes, lock)
}

// stillPending is an error if a pod that waited for its images has started meanwhile.
func (l *launch) stillPending(p *upPod) error {
	if !p.pending || l.replace || l.service != nil {
		return nil
	}
	if plan, err := p.place.Plan(); err != nil || plan.Awaits || !p.place.Alive() {
		return nil
	}
	return report.New(report.Failure, replaceHint(p), "pod %s has started meanwhile, %w", p.place.Name, errOtherManifest)
}

// retryPull asks the puller of a pod that waits already for an attempt now.
func retryPull(p *upPod) error {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	err := remote.Persist(ctx, p.place, func() error {
		return tellOnce(ctx, p.place, wire.Request{Verb: wire.Changed, Changed: &wire.ChangedRequest{}})
	})
	if err != nil && p.place.Alive() {
		return fmt.Errorf("try again to pull for pod %s: %w", p.place.Name, err)
	}
	return nil // who waits for the pod sees what has become of it
}

// tryPod makes one attempt to pull what a pod waits for, and to start it.
func (l *launch) tryPod(ctx context.Context, p *upPod) (err error) {
	w := p.waiting
	w.begin()
	defer func() {
		if err != nil {
			l.release()
		}
	}()
	found, err := l.ensure(ctx)
	if err != nil {
		return err
	}
	waits := p.plan
	if err := l.build(p, found); err != nil {
		return &notMade{"CreateContainerConfigError", "Failed", err}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.close()
	if err = l.begin(p, l.startPod); err == nil {
		return nil
	}
	p.plan = waits
	if rerr := errors.Join(l.put(p, p.past.created), w.open()); rerr != nil {
		report.Print(l.front.err, rerr)
	}
	return &notMade{"CreatePodSandboxError", "FailedCreatePodSandBox", err}
}

// notMade is why a pod whose images are here was not started, with the kubelet's reasons of its
// containers and of its event.
type notMade struct {
	reason, event string
	err           error
}

func (e *notMade) Error() string { return e.err.Error() }
func (e *notMade) Unwrap() error { return e.err }

// eachPending calls do for each pod that this process pulls images for.
func (l *launch) eachPending(do func(*pendingPod)) {
	for _, p := range l.pods {
		if p.waiting != nil {
			do(p.waiting)
		}
	}
}

// event adds to the events of a pod.
func (l *launch) event(p *upPod, container string, kind pod.EventType, reason, message string) {
	e := pod.Event{Type: kind, Reason: reason, Container: container, Last: time.Now(), Message: message}
	if err := p.place.AddEvents(e); err != nil {
		report.Print(l.front.err, err)
	}
}

// pulling tells the pods that wait for an image that it is being pulled.
func (l *launch) pulling(u use) {
	for _, p := range l.pods {
		for _, i := range manifest.Images(p.object.Pod) {
			if p.waiting != nil && p.use(i) == u {
				l.event(p, i.Container, pod.Normal, "Pulling", fmt.Sprintf("Pulling image %q", u.ref))
			}
		}
	}
}

// copied reports that the copy on this machine is used, because the registry cannot be asked.
func (l *launch) copied(u use, why error) {
	l.fetches.copied(u, why)
	for _, p := range l.pods {
		for _, i := range manifest.Images(p.object.Pod) {
			if p.waiting != nil && p.use(i) == u {
				l.event(p, i.Container, pod.Warning, copyUsed, why.Error())
			}
		}
	}
	l.front.warn(why)
}

// failed publishes that an attempt has failed, in the kubelet's words
// (pkg/kubelet/images/image_manager.go, pkg/kubelet/kuberuntime/kuberuntime_container.go).
func (l *launch) failed(p *upPod, err error, next time.Duration) {
	why := map[string]pod.Waiting{} // by container; "" is for all others
	var made *notMade
	if errors.As(err, &made) {
		why[""] = pod.Waiting{Reason: made.reason, Message: made.Error()}
		l.event(p, "", pod.Warning, made.event, "Error: "+made.Error())
	}
	for _, i := range manifest.Images(p.object.Pod) {
		cause := l.fetches.cause(p.use(i))
		if cause == nil || made != nil {
			continue
		}
		c := pod.Waiting{Reason: image.Reason(cause), Message: cause.Error()}
		switch c.Reason {
		case image.ErrImageNeverPull:
			c.Message = fmt.Sprintf("Container image %q is not present with pull policy of Never", i.Reference)
			l.event(p, i.Container, pod.Warning, c.Reason, c.Message)
		case "":
			c.Reason = image.ErrImagePull
			fallthrough
		default:
			l.event(p, i.Container, pod.Warning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", i.Reference, cause))
		}
		l.event(p, i.Container, pod.Warning, "Failed", "Error: "+c.Reason)
		why[i.Container] = c
	}
	if len(why) == 0 { // nothing could be asked for
		why[""] = pod.Waiting{Reason: image.ErrImagePull, Message: err.Error()}
	}
	p.waiting.publish(func(st *pod.Status) {
		*st.Awaits = pod.Awaiting{Attempts: st.Awaits.Attempts + 1, Error: err.Error(), Reason: image.Reason(err), Hint: report.Hint(err), Passes: made == nil && l.fetches.mayPass(), Next: next}
		eachStatus(st, func(c *pod.ContainerStatus) {
			reason, ok := why[c.Name]
			if !ok {
				reason, ok = why[""]
			}
			if ok {
				c.State = pod.State{Waiting: &reason}
			}
		})
	})
}

// shownPull is how long a failed pull is ErrImagePull before it is ImagePullBackOff; with the
// kubelet it is so until it looks at the pod again.
const shownPull = time.Second

// rest waits until a pod's images are to be tried again, or ctx ends. asked says that a client
// has asked for the next attempt.
func (l *launch) rest(ctx context.Context, wait time.Duration, p *upPod) (asked bool) {
	shown := min(shownPull, wait/2)
	if asked, over := p.waiting.pause(ctx, shown); asked || over {
		return asked
	}
	l.backOff(p)
	asked, _ = p.waiting.pause(ctx, wait-shown)
	return asked
}

// backOff publishes that images that could not be pulled are waited for.
func (l *launch) backOff(p *upPod) {
	var again []string
	for _, i := range manifest.Images(p.object.Pod) {
		if cause := l.fetches.cause(p.use(i)); cause != nil && image.Reason(cause) != image.ErrImageNeverPull {
			l.event(p, i.Container, pod.Normal, "BackOff", fmt.Sprintf("Back-off pulling image %q", i.Reference))
			l.event(p, i.Container, pod.Warning, "Failed", "Error: "+image.ImagePullBackOff)
			again = append(again, i.Container)
		}
	}
	p.waiting.publish(func(st *pod.Status) {
		eachStatus(st, func(c *pod.ContainerStatus) {
			if w := c.State.Waiting; w != nil && slices.Contains(again, c.Name) {
				c.State = pod.State{Waiting: &pod.Waiting{Reason: image.ImagePullBackOff, Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, w.Reason, w.Message)}}
			}
		})
	})
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// tellWaits writes why the images of a pod did not come, and when they are tried again.
func (f *front) tellWaits(p *upPod, st *pod.Status) {
	report.Print(f.err, report.New(report.Failure, st.Awaits.Hint, "%s", st.Awaits.Error))
	eachStatus(st, func(c *pod.ContainerStatus) {
		if w := c.State.Waiting; w != nil && !starting(w.Reason) {
			fmt.Fprintf(f.err, "podrun: pod %s: container %s waits: %s: back-off pulling image %s; next try in %v\n",
				p.place.Name, c.Name, image.ImagePullBackOff, report.Escape(c.Image), st.Awaits.Next)
		}
	})
}

// awaitImages waits for the images of a pod that this command wants, and shows how they come. An
// attempt that fails is an error if the next one cannot but fail, too, or with --fail-fast; but not
// if the command is patient.
func (f *front) awaitImages(ctx context.Context, p *upPod, patient bool) error {
	bars := f.newProgress("fetching")
	defer bars.end()
	var failed *pod.Awaiting // why this command gives up
	why, told := "they are being pulled", 0
	err := watchLayers(ctx, p.place, func(st *pod.Status) bool {
		now := st.Awaits
		switch {
		case now == nil || st.Deleting || st.Phase.Terminal():
			return true
		case now.Error == "":
			return false
		}
		if why = now.Error; !patient && (p.failFast || !now.Passes) {
			failed = now
			return true
		}
		if now.Attempts > told {
			told = now.Attempts
			f.tellWaits(p, st)
		}
		return false
	}, func(l wire.LayerProgress) {
		if l.Layer == "" { // all of the image
			bars.done(l.Image)
			return
		}
		bars.tell(image.Progress{Image: l.Image, Layer: l.Layer, Status: image.Status(l.Status), Done: l.Done, Total: l.Total})
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return report.New(report.Failure, "podrun events "+p.place.Name+" shows how they come", "not all images of pod %s came within the --timeout: %s", p.place.Name, why)
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return &image.Error{Reason: failed.Reason, Err: report.New(report.Failure, failed.Hint, "%s", failed.Error)}
	case err != nil && !errors.Is(err, remote.ErrNotRunning):
		return err
	}
	p.awaits, p.pulled = false, true // who watches the pod next sees what has become of it
	return f.warnOfCopies(p)
}

// copyUsed is the reason of the event that a copy on this machine is used, because the registry
// cannot be asked. The kubelet has no such event: it fails there.
const copyUsed = "LocalImageUsed"

// warnOfCopies shows which copies a puller has used since this command looked for the images.
func (f *front) warnOfCopies(p *upPod) error {
	events, err := p.place.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Reason == copyUsed && e.Last.After(p.looked) {
			f.warn(errors.New(e.Message))
		}
	}
	return nil
}
