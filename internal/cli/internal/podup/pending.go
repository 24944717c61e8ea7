package podup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// placeholderImage stands for an image that is not pulled yet, in a Plan that is never run.
var placeholderImage = pod.Image{Entrypoint: []string{"unknown"}, User: "65534"}

// localImages finds the images that are present locally. Pods whose images need a registry wait for a
// puller. complete reports that all images of the other pods are present.
func (r *Run) localImages(ctx context.Context) (found map[ImageRequest]pod.Image, complete bool, err error) {
	requests, began := r.imageRequests(), time.Now()
	found, failed, err := r.pullImages(ctx, requests, true)
	if err != nil {
		return nil, false, err
	}
	lacking := map[ImageRequest]bool{}
	for u, err := range failed {
		if !errors.Is(err, image.ErrRegistryNeeded) && image.Reason(err) != image.ErrImageNeverPull {
			return nil, false, err
		}
		lacking[u] = true
	}
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		p.LookedAt = began
		p.AwaitsImages = p.AwaitsImages || (p.Action == Create || p.Action == Replace && p.ReplacesPending) && slices.ContainsFunc(manifest.Images(p.Object.Pod), func(i manifest.ImageUse) bool { return lacking[p.ImageRequest(i)] })
	}
	return found, !slices.ContainsFunc(r.imageRequests(), func(u ImageRequest) bool { return lacking[u] }), nil
}

// startPull records a pod that waits for its images, and starts its puller.
func (r *Run) startPull(p *Target, lock *os.File, created time.Time) (err error) {
	if err := lock.Truncate(0); err != nil { // removes what a lost pod init has written
		return fmt.Errorf("start the pull of pod %s: %w", p.Pod.Name, err)
	}
	if err := r.WriteRecord(p, created); err != nil {
		return err
	}
	st := pendingStatus(p.Plan)
	if err := p.Pod.WriteStatus(&st); err != nil {
		return err
	}
	options := cmdutil.PullerOptions{TLSVerify: r.Pull.TLSVerify, AuthFile: r.Pull.AuthFile, Pull: p.pull, RequireLimits: r.RequireLimits}
	if options.AuthFile != "" {
		if options.AuthFile, err = filepath.Abs(options.AuthFile); err != nil {
			return fmt.Errorf("find the auth file: %w", err)
		}
	}
	p.closePorts() // they are opened again when the pod starts
	return r.Env.Deps.StartPuller(r.Dirs, p.Pod, options, lock)
}

// stillPending returns an error if a pod that waited for its images has started meanwhile.
func (r *Run) stillPending(p *Target) error {
	if !p.ReplacesPending || r.Replace || r.Unit != nil {
		return nil
	}
	if plan, err := p.Pod.Plan(); err != nil || plan.ImagesPending || !p.Pod.Alive() {
		return nil
	}
	return report.New(report.Failure, replaceHint(p), "pod %s has started meanwhile and %w", p.Pod.Name, cmdutil.ErrImmutable)
}

// retryPull requests an immediate attempt from the puller of a waiting pod.
func retryPull(p *Target) error {
	ctx, cancel := context.WithTimeout(context.Background(), podclient.NotifyTime)
	defer cancel()
	err := podclient.Request(ctx, p.Pod, wire.Request{Verb: wire.Changed, Changed: &wire.ChangedRequest{}})
	if err != nil && p.Pod.Alive() {
		return fmt.Errorf("try again to pull for pod %s: %w", p.Pod.Name, err)
	}
	return nil // the caller, which waits for the pod, reads its new state
}

// tryStart makes one attempt to pull a pod's images and to start it.
func (r *Run) tryStart(ctx context.Context, p *Target) (err error) {
	w := p.Puller
	w.Begin()
	defer func() {
		if err != nil {
			r.Release()
		}
	}()
	found, err := r.Ensure(ctx)
	if err != nil {
		return err
	}
	waits := p.Plan
	if err := r.Build(p, found); err != nil {
		return &startError{"CreateContainerConfigError", "Failed", err}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.Close()
	if err = r.begin(p, r.startPod); err == nil {
		return nil
	}
	p.Plan = waits
	if rerr := errors.Join(r.WriteRecord(p, p.Resumed.Created), w.open()); rerr != nil {
		report.Print(r.Env.ErrOut, rerr)
	}
	return &startError{"CreatePodSandboxError", "FailedCreatePodSandBox", err}
}

// startError is the reason why a pod whose images are present was not started, with the kubelet's reasons
// for its containers and its event.
type startError struct {
	reason, event string
	err           error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// EachPending calls do for each pod that this process pulls images for.
func (r *Run) EachPending(do func(*PendingPod)) {
	for _, p := range r.Targets {
		if p.Puller != nil {
			do(p.Puller)
		}
	}
}

// event adds an event to a pod.
func (r *Run) event(p *Target, container string, kind pod.EventType, reason, message string) {
	e := pod.Event{Type: kind, Reason: reason, Container: container, Last: time.Now(), Message: message}
	if err := p.Pod.AddEvents(e); err != nil {
		report.Print(r.Env.ErrOut, err)
	}
}

// pulling adds an event of the pull to the pods that wait for an image.
func (r *Run) pulling(u ImageRequest) {
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if p.Puller != nil && p.ImageRequest(i) == u {
				r.event(p, i.Container, pod.Normal, "Pulling", fmt.Sprintf("Pulling image %q", u.Ref))
			}
		}
	}
}

// noteLocalCopy adds an event that the local copy is used, because the registry cannot be reached.
func (r *Run) noteLocalCopy(u ImageRequest, why error) {
	r.pulls.noteLocalCopy(u, why)
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if p.Puller != nil && p.ImageRequest(i) == u {
				r.event(p, i.Container, pod.Warning, LocalImageUsed, why.Error())
			}
		}
	}
	r.Env.Warn(why)
}

// Failed publishes a failed attempt, in the kubelet's words (pkg/kubelet/images/image_manager.go,
// pkg/kubelet/kuberuntime/kuberuntime_container.go).
func (r *Run) Failed(p *Target, err error, next time.Duration) {
	why := map[string]pod.Waiting{} // by container; "" for all others
	var made *startError
	if errors.As(err, &made) {
		why[""] = pod.Waiting{Reason: made.reason, Message: made.Error()}
		r.event(p, "", pod.Warning, made.event, "Error: "+made.Error())
	}
	for _, i := range manifest.Images(p.Object.Pod) {
		cause := r.pulls.cause(p.ImageRequest(i))
		if cause == nil || made != nil {
			continue
		}
		c := pod.Waiting{Reason: image.Reason(cause), Message: cause.Error()}
		switch c.Reason {
		case image.ErrImageNeverPull:
			c.Message = fmt.Sprintf("Container image %q is not present with pull policy of Never", i.Reference)
			r.event(p, i.Container, pod.Warning, c.Reason, c.Message)
		case "":
			c.Reason = image.ErrImagePull
			fallthrough
		default:
			r.event(p, i.Container, pod.Warning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", i.Reference, cause))
		}
		r.event(p, i.Container, pod.Warning, "Failed", "Error: "+c.Reason)
		why[i.Container] = c
	}
	if len(why) == 0 { // no image was requested
		why[""] = pod.Waiting{Reason: image.ErrImagePull, Message: err.Error()}
	}
	p.Puller.publish(func(st *pod.Status) {
		*st.ImagePull = pod.ImagePull{Attempts: st.ImagePull.Attempts + 1, Error: err.Error(), Reason: image.Reason(err), Hint: report.Hint(err), Retryable: made == nil && r.pulls.retryable(), Next: next}
		ForEachStatus(st, func(c *pod.ContainerStatus) {
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

// shownPull is how long a failed pull has the reason ErrImagePull before it becomes ImagePullBackOff. In
// the kubelet it keeps that reason until the next sync of the pod.
const shownPull = time.Second

// waitForRetry waits until the next attempt is due, or ctx ends. requested reports that a client has
// requested the attempt.
func (r *Run) waitForRetry(ctx context.Context, wait time.Duration, p *Target) (requested bool) {
	shown := min(shownPull, wait/2)
	if requested, over := p.Puller.Sleep(ctx, shown); requested || over {
		return requested
	}
	r.BackOff(p)
	requested, _ = p.Puller.Sleep(ctx, wait-shown)
	return requested
}

// BackOff publishes that a pod waits for the next attempt to pull its images.
func (r *Run) BackOff(p *Target) {
	var again []string
	for _, i := range manifest.Images(p.Object.Pod) {
		if cause := r.pulls.cause(p.ImageRequest(i)); cause != nil && image.Reason(cause) != image.ErrImageNeverPull {
			r.event(p, i.Container, pod.Normal, "BackOff", fmt.Sprintf("Back-off pulling image %q", i.Reference))
			r.event(p, i.Container, pod.Warning, "Failed", "Error: "+image.ImagePullBackOff)
			again = append(again, i.Container)
		}
	}
	p.Puller.publish(func(st *pod.Status) {
		ForEachStatus(st, func(c *pod.ContainerStatus) {
			if w := c.State.Waiting; w != nil && slices.Contains(again, c.Name) {
				c.State = pod.State{Waiting: &pod.Waiting{Reason: image.ImagePullBackOff, Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, w.Reason, w.Message)}}
			}
		})
	})
}

// Dup duplicates a file's descriptor.
func Dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// LocalImageUsed is the reason of the event that a local copy is used, because the registry cannot be
// reached. The kubelet has no such event: there, the pull fails.
const LocalImageUsed = "LocalImageUsed"
