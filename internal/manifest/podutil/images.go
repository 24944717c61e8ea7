package podutil

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ImageUse is the use of an image by a container or a volume.
type ImageUse struct {
	Container   string // "" for a volume
	Volume      string // "" for a container
	Reference   string // as written in the manifest
	PullPolicy  string // Always, IfNotPresent or Never; the default if unset
	PolicyUnset bool   // the manifest sets no policy
}

// Key identifies the use within its pod: Build finds the image by it.
func (u ImageUse) Key() string {
	if u.Volume != "" {
		return VolumeImageKey(u.Volume)
	}
	return u.Container
}

// VolumeImageKey returns the key of a volume's image. It is not a valid name of a container.
func VolumeImageKey(name string) string { return "volume/" + name }

// Images lists the images of a loaded Pod: first of volumes, then of init containers, in the order of the
// manifest.
func Images(p *corev1.Pod) []ImageUse {
	var uses []ImageUse
	VisitImages(&p.Spec, func(u ImageUse, policy *corev1.PullPolicy) {
		u.PolicyUnset = *policy == ""
		u.PullPolicy = string(*policy)
		if u.PolicyUnset {
			u.PullPolicy = string(DefaultPullPolicy(u.Reference))
		}
		uses = append(uses, u)
	})
	return uses
}

// VisitImages visits the images of a Pod, except of its ephemeral containers.
func VisitImages(s *corev1.PodSpec, visit func(u ImageUse, policy *corev1.PullPolicy)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Image != nil {
			visit(ImageUse{Volume: v.Name, Reference: v.Image.Reference}, &v.Image.PullPolicy)
		}
	}
	for c := range Containers(s) {
		visit(ImageUse{Container: c.Name, Reference: c.Image}, &c.ImagePullPolicy)
	}
}

// DefaultPullPolicy returns the API server's default policy for an image.
func DefaultPullPolicy(reference string) corev1.PullPolicy {
	if imageTag(reference) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// imageTag returns the tag of an image reference: latest if there is neither tag nor digest.
func imageTag(ref string) string {
	name, _, digested := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	if digested {
		return ""
	}
	return "latest"
}
