package podutil

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ImageUse is the need that a container has of an image, or a volume.
type ImageUse struct {
	Container   string // "" for a volume
	Volume      string // "" for a container
	Reference   string // as the manifest spells it
	PullPolicy  string // Always, IfNotPresent or Never; of an unset one the default
	PolicyUnset bool   // the manifest has no policy
}

// Key names the use among those of its pod: Build finds the image by it.
func (u ImageUse) Key() string {
	if u.Volume != "" {
		return VolumeImageKey(u.Volume)
	}
	return u.Container
}

// VolumeImageKey is no name of a container.
func VolumeImageKey(name string) string { return "volume/" + name }

// Images lists the images of a loaded Pod: volumes', then init containers' first, in the
// order of the manifest.
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

// VisitImages visits the images of a Pod, but for those of ephemeral containers.
func VisitImages(s *corev1.PodSpec, visit func(u ImageUse, policy *corev1.PullPolicy)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Image != nil {
			visit(ImageUse{Volume: v.Name, Reference: v.Image.Reference}, &v.Image.PullPolicy)
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			visit(ImageUse{Container: list[i].Name, Reference: list[i].Image}, &list[i].ImagePullPolicy)
		}
	}
}

// DefaultPullPolicy is the policy that the API server gives an image without one.
func DefaultPullPolicy(reference string) corev1.PullPolicy {
	if imageTag(reference) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// imageTag gives the tag of an image reference: latest where there is neither tag
// nor digest.
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
