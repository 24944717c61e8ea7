package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// imageUse is the need that a container has of an image, or a volume.
type imageUse struct {
	Container  string // "" for a volume
	Volume     string // "" for a container
	Reference  string // as the manifest spells it
	PullPolicy string // Always, IfNotPresent or Never; of an unset one the default
	Unset      bool   // the manifest has no policy
}

// Key names the use among those of its pod: Build finds the image by it.
func (u imageUse) Key() string {
	if u.Volume != "" {
		return volumeUse(u.Volume)
	}
	return u.Container
}

// volumeUse is no name of a container.
func volumeUse(name string) string { return "volume/" + name }

// images lists the images of a loaded Pod: volumes', then init containers' first, in the
// order of the manifest.
func images(p *corev1.Pod) []imageUse {
	var uses []imageUse
	eachImage(&p.Spec, func(u imageUse, policy *corev1.PullPolicy) {
		u.Unset = *policy == ""
		u.PullPolicy = string(*policy)
		if u.Unset {
			u.PullPolicy = string(defaultPullPolicy(u.Reference))
		}
		uses = append(uses, u)
	})
	return uses
}

// eachImage visits the images of a Pod, but for those of ephemeral containers.
func eachImage(s *corev1.PodSpec, visit func(u imageUse, policy *corev1.PullPolicy)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Image != nil {
			visit(imageUse{Volume: v.Name, Reference: v.Image.Reference}, &v.Image.PullPolicy)
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			visit(imageUse{Container: list[i].Name, Reference: list[i].Image}, &list[i].ImagePullPolicy)
		}
	}
}

// defaultPull gives each image the pull policy that the API server gives it.
func defaultPull(s *corev1.PodSpec) {
	set := func(u imageUse, policy *corev1.PullPolicy) {
		if *policy == "" {
			*policy = defaultPullPolicy(u.Reference)
		}
	}
	eachImage(s, set)
	for i := range s.EphemeralContainers {
		c := &s.EphemeralContainers[i]
		set(imageUse{Reference: c.Image}, &c.ImagePullPolicy)
	}
}

// defaultPullPolicy is the policy that the API server gives an image without one.
func defaultPullPolicy(reference string) corev1.PullPolicy {
	if imageTag(reference) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// unsetPull names the images of a Pod without a pull policy, by their keys.
func unsetPull(s *corev1.PodSpec) (keys []string) {
	eachImage(s, func(u imageUse, policy *corev1.PullPolicy) {
		if *policy == "" {
			keys = append(keys, u.Key())
		}
	})
	return keys
}

// restorePull is the opposite of defaultPull for the images that unsetPull has named. A
// policy that is not the default has been written since.
func restorePull(s *corev1.PodSpec, keys []string) {
	eachImage(s, func(u imageUse, policy *corev1.PullPolicy) {
		if slices.Contains(keys, u.Key()) && *policy == defaultPullPolicy(u.Reference) {
			*policy = ""
		}
	})
}
