package podup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// errTooLate is the cause of a run that has exceeded its time limit.
var errTooLate = errors.New("timed out")

// pullAllImages makes every image available locally. It retries when a network or a registry does not
// answer, as the kubelet does. A failure that a retry cannot fix is returned at once.
func (r *Run) pullAllImages(ctx context.Context) (map[ImageRequest]pod.Image, error) {
	if r.Background || r.Unit != nil && len(r.Targets) > 0 {
		found, complete, err := r.localImages(ctx)
		waits := r.Unit != nil && slices.ContainsFunc(r.Targets, func(p *Target) bool { return p.AwaitsImages })
		if err != nil || complete && !waits {
			return found, err
		}
	}
	if r.Unit != nil {
		return r.Unit.PullImages(ctx, r)
	}
	for attempt := 0; ; attempt++ {
		found, err := r.Ensure(ctx)
		switch {
		case err == nil:
			return found, nil
		case r.RetryPulls:
			err = r.waitAfterFailure(ctx, attempt, err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// waitAfterFailure waits for the next attempt, or returns the error if it is not one to retry.
func (r *Run) waitAfterFailure(ctx context.Context, attempt int, err error) error {
	if context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	if ctx.Err() != nil || !r.pulls.retryable() {
		return err
	}
	wait := r.Env.PullBackOff(attempt)
	r.Release()
	report.Print(r.Env.ErrOut, err)
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if r.pulls.failed(p.ImageRequest(i)) {
				fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s: %s waits: ImagePullBackOff: back-off pulling image %s; next try in %v\n",
					p.Pod.Name, imageUser(i), report.Escape(i.Reference), wait)
			}
		}
	}
	r.pulls.backOff()
	if sleep.For(ctx, wait) != nil && context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	return ctx.Err()
}

func tooLate(err error) error {
	return report.New(report.Failure, "run podrun up again to resume the pull", "not all images were pulled within the --timeout: %w", err)
}

// imageUser returns the name of the container or volume that needs an image.
func imageUser(i manifest.ImageUse) string {
	if i.Volume != "" {
		return "volume " + i.Volume
	}
	return "container " + i.Container
}

// WithTimeout returns do with a time limit; 0 means none.
func WithTimeout(timeout time.Duration, do func(context.Context) error) func(context.Context) error {
	if timeout <= 0 {
		return do
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTooLate)
		defer cancel()
		return do(ctx)
	}
}

// retryable reports whether a retry may fix all failures.
func (f *ImagePulls) retryable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	any := false
	for _, got := range f.byRequest {
		if got.err != nil {
			if any = true; !image.IsTransient(got.err) {
				return false
			}
		}
	}
	return any
}

// failed reports whether the last attempt to pull an image failed.
func (f *ImagePulls) failed(u ImageRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byRequest[u] != nil && f.byRequest[u].err != nil
}

// backOff records for every failed image that it waits for its next attempt, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). The events are added to the pods once these exist.
func (f *ImagePulls) backOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byRequest {
		if got.err == nil {
			continue
		}
		got.events = append(got.events,
			pod.Event{Type: pod.Normal, Reason: "Pulling", Last: got.began, Message: fmt.Sprintf("Pulling image %q", u.Ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: fmt.Sprintf("Failed to pull image %q: %v", u.Ref, got.err)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ErrImagePull},
			pod.Event{Type: pod.Normal, Reason: "BackOff", Last: got.ended, Message: fmt.Sprintf("Back-off pulling image %q", u.Ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ImagePullBackOff})
		if over := len(got.events) - maxOldEvents; over > 0 {
			got.events = got.events[over:]
		}
	}
}

// maxOldEvents is the number of events of failed attempts that are kept for an image.
const maxOldEvents = 50

// ImageRequest is an image with how it is to be pulled. Containers with equal requests share one pull.
type ImageRequest struct {
	Ref, Policy string
	secrets     string // the pod's secrets for registries; see pullSecrets
	id          string // the image's ID, if its name does not determine it
}

// ImageRequest returns the request for the image of one of the pod's containers or volumes.
func (t *Target) ImageRequest(i manifest.ImageUse) ImageRequest {
	policy := i.PullPolicy
	if i.PolicyUnset {
		policy = image.Unset
	}
	return ImageRequest{i.Reference, cmp.Or(t.pull, policy), pullSecrets(t.Object.Pod), t.Pinned[i.Reference]}
}

// pullSecrets returns a pod's namespace and the names of its imagePullSecrets, or "" if it has none. Pods
// with the same value share pulls.
func pullSecrets(p *corev1.Pod) string {
	if len(p.Spec.ImagePullSecrets) == 0 {
		return ""
	}
	words := []string{p.Namespace}
	for _, s := range p.Spec.ImagePullSecrets {
		words = append(words, s.Name)
	}
	return strings.Join(words, " ")
}

// Logins returns the auth files from the secrets of an image use. The secrets come from the same
// manifests, which are stored after the pull, or from the store. As with the kubelet, a secret that is
// missing or of another type is reported, and the image is pulled without it.
func (r *Run) Logins(u ImageRequest) [][]byte {
	words := strings.Fields(u.secrets)
	if len(words) == 0 {
		return nil
	}
	var texts [][]byte
	for _, name := range words[1:] {
		text, err := r.login(words[0], name)
		if err != nil {
			fmt.Fprintln(r.Env.ErrOut, report.Escape("podrun: warning: "+fmt.Sprintf("image %s is pulled without imagePullSecret %s: %v", u.Ref, name, err)))
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *Run) login(namespace, name string) ([]byte, error) {
	var s *pod.Secret
	for i := range r.Stored {
		if o := r.Stored[i].Stored; o.Kind == pod.KindSecret && o.Namespace == namespace && o.Name == name {
			s = o.Secret
		}
	}
	if s == nil {
		o, err := r.Dirs.Object(pod.KindSecret, namespace, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("secret %q not found", name)
		}
		if err != nil {
			return nil, err
		}
		s = o.Secret
	}
	for kind, key := range map[corev1.SecretType]string{
		corev1.SecretTypeDockerConfigJson: corev1.DockerConfigJsonKey, corev1.SecretTypeDockercfg: corev1.DockerConfigKey,
	} {
		if s.Type == string(kind) {
			return s.Data[key], image.ValidateAuthFile(s.Data[key])
		}
	}
	return nil, fmt.Errorf("it is of type %s, not %s", s.Type, corev1.SecretTypeDockerConfigJson)
}

// PullAs makes all images use one pull policy, instead of those of the manifests.
func (r *Run) PullAs(word string) {
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		p.pull = PullPolicies[word]
	}
}

// PullPolicies maps the values of --pull, which are those of podman and docker, to policies.
var PullPolicies = map[string]string{
	"always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer,
}

// pinImages sets the image IDs of a pod where names do not determine them. During the trial of an update
// these are the newer images. After a rollback, if a pull would contact a registry each time, they are the
// images that the pod had before. Of an update that a power failure has interrupted, the states
// UpdateTagging and UpdateUntagging are completed for all images, because the trial was over; UpdateTrying
// of an earlier boot is ignored.
func (r *Run) pinImages(p *Target) error {
	if p.Pinned != nil {
		return nil
	}
	u, err := r.Dirs.Update(p.Pod)
	if err != nil || u == nil {
		return err
	}
	trying := r.Dirs.UpdateRunning(p.Pod, u)
	p.Pinned = map[string]string{}
	for _, i := range manifest.Images(p.Object.Pod) {
		for _, up := range u.Images {
			switch {
			case up.Ref != i.Reference:
			case trying, u.State == store.UpdateTagging:
				p.Pinned[up.Ref] = up.New
			case u.State == store.UpdateUntagging:
				p.Pinned[up.Ref] = up.Old
			case u.State == store.UpdateUndone && i.PullPolicy == image.Always:
				p.Pinned[up.Ref] = up.Old
				fmt.Fprintln(r.Env.ErrOut, report.Escape(fmt.Sprintf("podrun: pod %s keeps the image %s that it was rolled back to; podrun update %s uses the newest", p.Pod.Name, up.Ref, p.Pod.Name)))
			}
		}
	}
	return nil
}
