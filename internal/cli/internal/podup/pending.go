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
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// placeholderImage stands for an image that is not pulled yet, in a Plan that is never run.
var placeholderImage = pod.Image{Entrypoint: []string{"unknown"}, User: "65534"}

// localImages finds the images that are present locally. Pods whose images need a registry wait for a
// puller. complete reports that all images of the other pods are present.
func (r *Run) localImages(ctx context.Context) (found map[pull.Request]pod.Image, complete bool, err error) {
	requests, began := r.imageRequests(), time.Now()
	found, failed, err := r.pullImages(ctx, requests, true)
	if err != nil {
		return nil, false, err
	}
	lacking := map[pull.Request]bool{}
	for u, err := range failed {
		if !errors.Is(err, image.ErrRegistryNeeded) && image.Reason(err) != image.ErrImageNeverPull {
			return nil, false, err
		}
		lacking[u] = true
	}
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		p.LookedAt = began
		p.AwaitsImages = p.AwaitsImages || (p.Action == upplan.Create || p.Action == upplan.Replace && p.ReplacesPending) && slices.ContainsFunc(manifest.Images(p.Object.Pod), func(i manifest.ImageUse) bool { return lacking[p.ImageRequest(i)] })
	}
	return found, !slices.ContainsFunc(r.imageRequests(), func(u pull.Request) bool { return lacking[u] }), nil
}

// startPull records a pod that waits for its images, and starts its puller.
func (r *Run) startPull(p *Target, lock *os.File, created time.Time) (err error) {
	if err := lock.Truncate(0); err != nil { // removes what a lost pod init has written
		return fmt.Errorf("start the pull of pod %s: %w", p.Pod.Name, err)
	}
	if err := r.WriteRecord(p, created); err != nil {
		return err
	}
	st := pull.PendingStatus(p.Plan)
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
	return report.New(report.Failure, upplan.ReplaceHint(p.Pod.Name), "pod %s has started meanwhile and %w", p.Pod.Name, cmdutil.ErrImmutable)
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
	p.Pending.Close()
	if err = r.begin(p, r.startPod); err == nil {
		return nil
	}
	p.Plan = waits
	if rerr := errors.Join(r.WriteRecord(p, p.Resumed.Created), p.Pending.Open()); rerr != nil {
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

// isPuller reports whether pods are pending while this process pulls their images.
func (r *Run) isPuller() bool {
	return slices.ContainsFunc(r.Targets, func(p *Target) bool { return p.Pending != nil })
}

// EachPending calls do for each pod whose images this process pulls.
func (r *Run) EachPending(do func(*pull.Pending)) {
	for _, p := range r.Targets {
		if p.Pending != nil {
			do(p.Pending)
		}
	}
}

// addEvents adds events to the record of a pod.
func (r *Run) addEvents(p *Target, events ...pod.Event) {
	if err := p.Pod.AddEvents(events...); err != nil {
		report.Print(r.Env.ErrOut, err)
	}
}

// pulling adds an event of the pull to the pods that wait for an image.
func (r *Run) pulling(u pull.Request) {
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if p.Pending != nil && p.ImageRequest(i) == u {
				r.addEvents(p, pull.Pulling(i.Container, u.Ref, time.Now()))
			}
		}
	}
}

// noteLocalCopy adds an event that the local copy is used, because the registry cannot be reached.
func (r *Run) noteLocalCopy(u pull.Request, cause error) {
	r.pulls.NoteLocalCopy(u, cause)
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if p.Pending != nil && p.ImageRequest(i) == u {
				r.addEvents(p, pod.Event{Type: pod.Warning, Reason: pull.LocalImageUsed, Container: i.Container, Last: time.Now(), Message: cause.Error()})
			}
		}
	}
	r.Env.Warn(cause)
}

// pullLoop returns the loop of attempts to pull the run's images.
func (r *Run) pullLoop(retry func(error) bool, try func(context.Context) error) *pull.Loop {
	requests := make(chan struct{}, 1)
	r.pullRequests = requests
	return &pull.Loop{
		Try: func(ctx context.Context) error {
			r.EachPending((*pull.Pending).Begin)
			return try(ctx)
		},
		Retry: retry, BackOff: r.Env.PullBackOff, Failed: r.pullFailed, Waits: r.backOff, Requests: requests,
	}
}

// pullFailed publishes a failed attempt.
func (r *Run) pullFailed(err error, next time.Duration) {
	r.Release()
	switch {
	case r.Unit != nil:
		r.Unit.PullFailed(err, next)
	case !r.isPuller(): // up waits, without a record of the pods
		report.Print(r.Env.ErrOut, err)
	}
	for _, p := range r.Targets {
		if p.Pending != nil {
			r.attemptFailed(p, err, next)
			continue
		}
		for _, i := range manifest.Images(p.Object.Pod) {
			if r.pulls.Cause(p.ImageRequest(i)) != nil {
				fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s: %s waits: ImagePullBackOff: back-off pulling image %s; next try in %v\n",
					p.Pod.Name, imageUser(i), report.Escape(i.Reference), next)
			}
		}
	}
}

// attemptFailed publishes a failed attempt in the status and the events of a pod, with the kubelet's reasons
// (pkg/kubelet/kuberuntime/kuberuntime_container.go).
func (r *Run) attemptFailed(p *Target, err error, next time.Duration) {
	causes := map[string]pod.Waiting{} // by container; "" for all others
	var made *startError
	if errors.As(err, &made) {
		causes[""] = pod.Waiting{Reason: made.reason, Message: made.Error()}
		r.addEvents(p, pod.Event{Type: pod.Warning, Reason: made.event, Last: time.Now(), Message: "Error: " + made.Error()})
	}
	for _, i := range manifest.Images(p.Object.Pod) {
		if cause := r.pulls.Cause(p.ImageRequest(i)); cause != nil && made == nil {
			waiting, events := pull.Failure(i.Container, i.Reference, cause)
			causes[i.Container] = waiting
			r.addEvents(p, events...)
		}
	}
	if len(causes) == 0 { // no image was requested
		causes[""] = pod.Waiting{Reason: image.ErrImagePull, Message: err.Error()}
	}
	p.Pending.Publish(func(st *pod.Status) {
		*st.ImagePull = pod.ImagePull{Attempts: st.ImagePull.Attempts + 1, Error: err.Error(), Reason: image.Reason(err), Hint: report.Hint(err), Retryable: made == nil && r.pulls.Retryable(), Next: next}
		pull.ForEachStatus(st, func(c *pod.ContainerStatus) {
			cause, ok := causes[c.Name]
			if !ok {
				cause, ok = causes[""]
			}
			if ok {
				c.State = pod.State{Waiting: &cause}
			}
		})
	})
}

// backOff publishes that the pods wait for the next attempt to pull their images. The events of pods that do not exist
// yet are kept for them.
func (r *Run) backOff() {
	if !r.isPuller() {
		r.pulls.BackOff()
	}
	for _, p := range r.Targets {
		if p.Pending == nil {
			continue
		}
		var waiting []string
		for _, i := range manifest.Images(p.Object.Pod) {
			if cause := r.pulls.Cause(p.ImageRequest(i)); cause != nil && image.Reason(cause) != image.ErrImageNeverPull {
				r.addEvents(p, pull.BackOff(i.Container, i.Reference)...)
				waiting = append(waiting, i.Container)
			}
		}
		p.Pending.Publish(func(st *pod.Status) {
			pull.ForEachStatus(st, func(c *pod.ContainerStatus) {
				if w := c.State.Waiting; w != nil && slices.Contains(waiting, c.Name) {
					c.State = pod.State{Waiting: &pod.Waiting{Reason: image.ImagePullBackOff, Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.Image, w.Reason, w.Message)}}
				}
			})
		})
	}
}

// Dup duplicates a file's descriptor.
func Dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
