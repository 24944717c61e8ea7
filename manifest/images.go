package manifest

import corev1 "k8s.io/api/core/v1"

// ImageUse is one container's need of an image.
type ImageUse struct {
	Container  string
	Reference  string // as the manifest spells it
	PullPolicy string // Always, IfNotPresent or Never
}

// Images lists the images of a loaded Pod, init containers first, in the order of
// the manifest.
func Images(p *corev1.Pod) []ImageUse {
	var uses []ImageUse
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			uses = append(uses, ImageUse{Container: c.Name, Reference: c.Image, PullPolicy: string(c.ImagePullPolicy)})
		}
	}
	return uses
}
