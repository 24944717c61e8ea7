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

	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// errTooLate is the cause of a launch that has had all of its time.
var errTooLate = errors.New("the time is over")

// pullAllImages has every image on the machine. A network or a registry that does not answer
// is waited for, as by the kubelet; what will not be better by itself is an error at once.
func (r *Run) pullAllImages(ctx context.Context) (map[ImageUse]pod.Image, error) {
	if r.Background || r.Unit != nil && len(r.Targets) > 0 {
		found, all, err := r.localImages(ctx)
		waits := r.Unit != nil && slices.ContainsFunc(r.Targets, func(p *Target) bool { return p.AwaitsImages })
		if err != nil || all && !waits {
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
			err = r.again(ctx, attempt, err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// again waits until the images are to be tried again, or gives back the error that is none
// to wait for.
func (r *Run) again(ctx context.Context, attempt int, err error) error {
	if context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	if ctx.Err() != nil || !r.fetches.retryable() {
		return err
	}
	wait := r.Env.PullBackOff(attempt)
	r.Release()
	report.Print(r.Env.ErrOut, err)
	for _, p := range r.Targets {
		for _, i := range manifest.Images(p.Object.Pod) {
			if r.fetches.failed(p.Use(i)) {
				fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s: %s waits: ImagePullBackOff: back-off pulling image %s; next try in %v\n",
					p.Pod.Name, imageUser(i), report.Escape(i.Reference), wait)
			}
		}
	}
	r.fetches.backOff()
	if podclient.Sleep(ctx, wait) != nil && context.Cause(ctx) == errTooLate {
		return tooLate(err)
	}
	return ctx.Err()
}

func tooLate(err error) error {
	return report.New(report.Failure, "podrun up again goes on where the pull was", "not all images came within the --timeout: %w", err)
}

// imageUser is what needs an image.
func imageUser(i manifest.ImageUse) string {
	if i.Volume != "" {
		return "volume " + i.Volume
	}
	return "container " + i.Container
}

// WithTimeout gives up what do does after a time, if there is one.
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

// retryable says whether all that failed may be better by itself.
func (f *ImagePulls) retryable() bool {
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
func (f *ImagePulls) failed(u ImageUse) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUse[u] != nil && f.byUse[u].err != nil
}

// BackOff notes of all that failed that they wait, in the kubelet's words
// (pkg/kubelet/images/image_manager.go): pods have it among their events once there are
// any.
func (f *ImagePulls) backOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byUse {
		if got.err == nil {
			continue
		}
		got.past = append(got.past,
			pod.Event{Type: pod.Normal, Reason: "Pulling", Last: got.began, Message: fmt.Sprintf("Pulling image %q", u.Ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: fmt.Sprintf("Failed to pull image %q: %v", u.Ref, got.err)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ErrImagePull},
			pod.Event{Type: pod.Normal, Reason: "BackOff", Last: got.ended, Message: fmt.Sprintf("Back-off pulling image %q", u.Ref)},
			pod.Event{Type: pod.Warning, Reason: "Failed", Last: got.ended, Message: "Error: " + image.ImagePullBackOff})
		if over := len(got.past) - maxPastEvents; over > 0 {
			got.past = got.past[over:]
		}
	}
}

// maxPastEvents is how many events of failed attempts are kept for an image.
const maxPastEvents = 50

// ImageUse is a way in which some container uses an image.
type ImageUse struct {
	Ref, Policy string
	secrets     string // of its pod, for registries; see pullSecrets
	id          string // of the image, if its name does not decide which it is
}

// Use is how one of the pod's containers uses its image.
func (t *Target) Use(i manifest.ImageUse) ImageUse {
	policy := i.PullPolicy
	if i.PolicyUnset {
		policy = image.Unset
	}
	return ImageUse{i.Reference, cmp.Or(t.pull, policy), pullSecrets(t.Object.Pod), t.Pinned[i.Reference]}
}

// pullSecrets is a pod's namespace and the names of its imagePullSecrets, "" if it has
// none: pods with the same pull as one.
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

// Logins are the auth files that a use's secrets hold: of the same manifests, which are
// kept after the images are here, or kept already. As with the kubelet, one that is not
// there or is no such thing is said, and the image pulled without.
func (r *Run) Logins(u ImageUse) [][]byte {
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

// PullAs has all images pulled by one policy, whatever the manifests say.
func (r *Run) PullAs(word string) {
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		p.pull = PullPolicies[word]
	}
}

// PullPolicies are the words of --pull, and what they mean. podman and docker have them.
var PullPolicies = map[string]string{
	"always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer,
}

// pinImages says which images a pod is made of, where a name does not decide that: while an
// update tries newer ones, these; after it was undone, and a registry would be asked each
// time, those that the pod had before. An update that a power cut has ended counts for
// nothing until the new images have proved themselves, and for all of them then.
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
				fmt.Fprintln(r.Env.ErrOut, report.Escape(fmt.Sprintf("podrun: pod %s keeps the image %s that it was rolled back to; podrun update %s takes the newest", p.Pod.Name, up.Ref, p.Pod.Name)))
			}
		}
	}
	return nil
}
