package podutil

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DeviceNames returns the names of the devices that a container or its pod's annotations request, each once.
func DeviceNames(p *corev1.Pod, c *corev1.Container) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		if strings.HasPrefix(key, DeviceAnnotationPrefix) {
			for name := range strings.SplitSeq(p.Annotations[key], ",") {
				add(name)
			}
		}
	}
	for _, name := range SortedResourceNames(c.Resources.Limits) {
		if IsDeviceName(name) {
			add(string(name))
		}
	}
	return names
}

// IsDeviceName reports whether a resource is a device's name, valid or not: no resource of Kubernetes has a
// = in its name.
func IsDeviceName(name corev1.ResourceName) bool { return strings.Contains(string(name), "=") }

// DeviceAnnotationPrefix begins the annotations that request devices for all containers.
const DeviceAnnotationPrefix = "cdi.k8s.io/"
