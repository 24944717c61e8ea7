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
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// errTooLate is the cause of a run that has exceeded its time limit.
var errTooLate = errors.New("timed out")

// pullAllImages makes every image available locally. It retries when a network or a registry does not
// answer, as the kubelet does. A failure that a retry cannot fix is returned at once.
func (r *Run) pullAllImages(ctx context.Context) (map[pull.Request]pod.Image, error) {
	if r.Background || r.Unit != nil && len(r.Targets) > 0 {
		found, complete, err := r.localImages(ctx)
		waits := r.Unit != nil && slices.ContainsFunc(r.Targets, func(p *Target) bool { return p.AwaitsImages })
		if err != nil || complete && !waits {
			return found, err
		}
	}
	if r.Unit != nil {
		return r.pullForUnit(ctx)
	}
	found, last := map[pull.Request]pod.Image(nil), error(nil)
	loop := r.pullLoop(func(error) bool { return r.RetryPulls && r.pulls.Retryable() }, func(ctx context.Context) error {
		found, last = r.Ensure(ctx)
		return last
	})
	err := loop.Run(ctx)
	if err != nil && context.Cause(ctx) == errTooLate {
		err = tooLate(last)
	}
	return found, err
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

// ImageRequest returns the request for the image of one of the pod's containers or volumes.
func (t *Target) ImageRequest(i manifest.ImageUse) pull.Request {
	policy := i.PullPolicy
	if i.PolicyUnset {
		policy = image.Unset
	}
	return pull.Request{Ref: i.Reference, Policy: cmp.Or(t.pull, policy), Secrets: pullSecrets(t.Object.Pod), ID: t.Pinned[i.Reference]}
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
func (r *Run) Logins(u pull.Request) [][]byte {
	words := strings.Fields(u.Secrets)
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

// PullAs makes all images use one pull policy, instead of the manifests' policies.
func (r *Run) PullAs(word string) {
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		p.pull = PullPolicies[word]
	}
}

// PullPolicies maps the values of --pull, the same as podman's and docker's, to policies.
var PullPolicies = map[string]string{
	"always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer,
}

// pinImages sets the image IDs of a pod where names do not determine them. While podrun update changes the pod these are the
// images of the version that it starts. As long as names are being moved to images, they are these images. After a way back,
// if a pull would contact a registry each time, they are the images that the pod had before. A change that was interrupted
// is over: names decide.
func (r *Run) pinImages(p *Target) error {
	if p.Pinned != nil {
		return nil
	}
	name, s, err := r.Dirs.UpdateOf(p.Pod)
	if err != nil || s == nil {
		return err
	}
	p.Pinned = map[string]string{}
	changing := s.State != store.SetSettled && r.Dirs.SetChanging(name)
	wentBack := s.State == store.SetSettled && s.HasGoneBack()
	for _, i := range manifest.Images(p.Object.Pod) {
		ref := i.Reference
		id := s.Retag[ref]
		switch {
		case changing && s.State == store.SetTrying:
			id = s.Next.Pins[ref]
		case changing:
			id = s.Current.Pins[ref]
		case id == "" && wentBack && i.PullPolicy == image.Always:
			id = s.Current.Pins[ref]
			fmt.Fprintln(r.Env.ErrOut, report.Escape(fmt.Sprintf("podrun: pod %s keeps the image %s that it was rolled back to; podrun update %s uses the newest", p.Pod.Name, ref, p.Pod.Name)))
		}
		if id != "" {
			p.Pinned[ref] = id
		}
	}
	return nil
}
