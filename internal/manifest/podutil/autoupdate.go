package podutil

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// AutoUpdatePolicy returns the policy of automatic updates of a container's image, or "". The container of a
// volume is "".
func AutoUpdatePolicy(p *corev1.Pod, container string) string {
	policy := cmp.Or(p.Annotations[AnnotationAutoUpdate+"/"+container], p.Annotations[AnnotationAutoUpdate])
	switch policy {
	case AutoUpdateRegistry, AutoUpdateLocal:
		return policy
	case "image": // podman's former word
		return AutoUpdateRegistry
	}
	return ""
}

// HasAutoUpdate reports whether a container of the pod is updated automatically.
func HasAutoUpdate(p *corev1.Pod) bool {
	for key := range p.Annotations {
		if key == AnnotationAutoUpdate || strings.HasPrefix(key, AnnotationAutoUpdate+"/") {
			return true
		}
	}
	return false
}
