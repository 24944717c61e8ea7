package manifest

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// seccompOf is the profile that counts for a container: its own before the pod's; nil
// is the runtime's default.
func seccompOf(p *corev1.Pod, c *corev1.Container) *corev1.SeccompProfile {
	if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		return sc.SeccompProfile
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		return sc.SeccompProfile
	}
	return nil
}

// SeccompProfiles are the names of the profiles of the user's own that a Pod asks for:
// clean paths below where such are kept.
func SeccompProfiles(p *corev1.Pod) []string {
	var names []string
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if name, ok := localProfile(p, &list[i]); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// localProfile is the name of the seccomp profile of the user's own that a container asks for.
func localProfile(p *corev1.Pod, c *corev1.Container) (string, bool) {
	profile := seccompOf(p, c)
	if profile == nil || profile.Type != corev1.SeccompProfileTypeLocalhost || profile.LocalhostProfile == nil {
		return "", false
	}
	return *profile.LocalhostProfile, true
}

// unconfined says whether there is to be no seccomp filter: a privileged container has
// none, as with the kubelet's runtimes.
func (b *builder) unconfined() bool {
	profile := seccompOf(b.pod, b.c)
	return is(b.security().Privileged) || profile != nil && profile.Type == corev1.SeccompProfileTypeUnconfined
}

// ownSeccomp is the profile of the user's that counts, if any.
func (b *builder) ownSeccomp() json.RawMessage {
	name, ok := localProfile(b.pod, b.c)
	if !ok || b.unconfined() {
		return nil
	}
	return b.seccomp[name]
}

// validateSeccomp is validateSeccompProfileField in pkg/apis/core/validation.
func validateSeccomp(s *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	kind, file := at.Child("type"), at.Child("localhostProfile")
	if s.Type == "" {
		return field.ErrorList{field.Required(kind, "type is required when seccompProfile is set")}
	}
	errs := oneOf(s.Type, kind, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	switch {
	case s.Type != corev1.SeccompProfileTypeLocalhost && s.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(file, *s.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	case s.Type == corev1.SeccompProfileTypeLocalhost && (s.LocalhostProfile == nil || *s.LocalhostProfile == ""):
		errs = append(errs, field.Required(file, "must be set when seccomp type is Localhost"))
	case s.Type == corev1.SeccompProfileTypeLocalhost:
		errs = append(errs, descendingPath(*s.LocalhostProfile, file)...)
	}
	return errs
}

// descendingPath is validateLocalDescendingPath in pkg/apis/core/validation.
func descendingPath(p string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(p) {
		errs = append(errs, field.Invalid(at, p, "must be a relative path"))
	}
	if slices.Contains(strings.Split(p, "/"), "..") {
		errs = append(errs, field.Invalid(at, p, "must not contain '..'"))
	}
	return errs
}
