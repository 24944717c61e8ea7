package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// use is a way in which some container uses an image.
type use struct {
	ref, policy string
	secrets     string // of its pod, for registries; see pullSecrets
	id          string // of the image, if its name does not decide which it is
}

// use is how one of the pod's containers uses its image.
func (p *upPod) use(i manifest.ImageUse) use {
	policy := i.PullPolicy
	if i.PolicyUnset {
		policy = image.Unset
	}
	return use{i.Reference, cmp.Or(p.pull, policy), pullSecrets(p.object.Pod), p.fixed[i.Reference]}
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

// logins are the auth files that a use's secrets hold: of the same manifests, which are
// kept after the images are here, or kept already. As with the kubelet, one that is not
// there or is no such thing is said, and the image pulled without.
func (l *launch) logins(u use) [][]byte {
	words := strings.Fields(u.secrets)
	if len(words) == 0 {
		return nil
	}
	var texts [][]byte
	for _, name := range words[1:] {
		text, err := l.login(words[0], name)
		if err != nil {
			fmt.Fprintln(l.front.err, report.Escape("podrun: warning: "+fmt.Sprintf("image %s is pulled without imagePullSecret %s: %v", u.ref, name, err)))
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

func (l *launch) login(namespace, name string) ([]byte, error) {
	var s *pod.Secret
	for i := range l.stored {
		if o := l.stored[i].Stored; o.Kind == pod.KindSecret && o.Namespace == namespace && o.Name == name {
			s = o.Secret
		}
	}
	if s == nil {
		o, err := l.dirs.Object(pod.KindSecret, namespace, name)
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
