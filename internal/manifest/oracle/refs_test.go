package oracle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reference makes a variable refer to an object, a resource or a file.
func (d draw) reference(s *corev1.EnvVarSource) {
	name, key := d.often("web", "", "A", "../x", "a.b"), d.often("k", "", "a/b", "..", ".", "A_b.c-d", "ä")
	switch d.number(0, 1, 2, 3) {
	case 0:
		s.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{Key: key}
		s.ConfigMapKeyRef.Name = name
	case 1:
		s.SecretKeyRef = &corev1.SecretKeySelector{Key: key}
		s.SecretKeyRef.Name = name
	case 2:
		s.FileKeyRef = &corev1.FileKeySelector{VolumeName: d.one("v", "w", "", "V"), Path: d.often("a/b", "", "../a", "a/../b", "..a"), Key: d.often("K", "", "a=b", "ä")}
	case 3:
		s.ResourceFieldRef = &corev1.ResourceFieldSelector{Resource: d.resourceName()}
		if d.maybe() {
			s.ResourceFieldRef.Divisor = resource.MustParse(d.one("1", "1m", "0", "1Mi", "1Ki", "2", "1G", "10m"))
		}
	}
}

func (d draw) resourceName() string {
	return d.one("limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
		d.often("limits.hugepages-2Mi", "requests.hugepages-1Gi", "", "limits.gpu", "cpu"))
}

func (d draw) envFrom() corev1.EnvFromSource {
	s := corev1.EnvFromSource{Prefix: d.often("", "P_", "a=b", "1", " ")}
	if d.maybe() {
		s.ConfigMapRef = &corev1.ConfigMapEnvSource{}
		s.ConfigMapRef.Name = d.often("web", "", "A")
	}
	if d.maybe() {
		s.SecretRef = &corev1.SecretEnvSource{}
		s.SecretRef.Name = d.often("key", "", "a/b")
	}
	return s
}
