package manifest

import corev1 "k8s.io/api/core/v1"

// ImageUse is the need that a container has of an image, or a volume.
type ImageUse struct {
	Container  string // "" for a volume
	Volume     string // "" for a container
	Reference  string // as the manifest spells it
	PullPolicy string // Always, IfNotPresent or Never
}

// Key names the use among those of its pod: Build finds the image by it.
func (u ImageUse) Key() string {
	if u.Volume != "" {
		return volumeUse(u.Volume)
	}
	return u.Container
}

// volumeUse is no name of a container.
func volumeUse(name string) string { return "volume/" + name }

// Images lists the images of a loaded Pod: volumes', then init containers' first, in the
// order of the manifest.
func Images(p *corev1.Pod) []ImageUse {
	var uses []ImageUse
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.Image != nil {
			uses = append(uses, ImageUse{Volume: v.Name, Reference: v.Image.Reference, PullPolicy: string(v.Image.PullPolicy)})
		}
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			uses = append(uses, ImageUse{Container: c.Name, Reference: c.Image, PullPolicy: string(c.ImagePullPolicy)})
		}
	}
	return uses
}
