package podutil

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
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

// IsDeviceKind reports whether a resource is a kind of devices, vendor.com/class, that is requested by number.
// It is an extended resource of Kubernetes (IsExtendedResourceName in pkg/apis/core/v1/helper).
func IsDeviceKind(name corev1.ResourceName) bool {
	s := string(name)
	return strings.Contains(s, "/") && !strings.Contains(s, corev1.ResourceDefaultNamespacePrefix) && !IsDeviceName(name) &&
		!strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix) && len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+s)) == 0
}

// DeviceCount is a number of devices of a kind.
type DeviceCount struct {
	Kind  string
	Count int
}

// DeviceCounts returns the devices that a container requests by number, by their kinds.
func DeviceCounts(c *corev1.Container) []DeviceCount {
	var counts []DeviceCount
	for _, name := range SortedResourceNames(c.Resources.Limits) {
		if q := c.Resources.Limits[name]; IsDeviceKind(name) && q.Value() > 0 {
			counts = append(counts, DeviceCount{string(name), int(q.Value())})
		}
	}
	return counts
}

// CountsDevices reports whether a container of the pod requests devices by number.
func CountsDevices(p *corev1.Pod) bool {
	for c := range Containers(&p.Spec) {
		if len(DeviceCounts(c)) > 0 {
			return true
		}
	}
	return false
}

// RuntimeNvidia is the handler of RuntimeClasses whose containers get the NVIDIA devices that their environment
// names.
const RuntimeNvidia = "nvidia"

// RuntimeHandlers returns the handlers of RuntimeClasses that podrun accepts. All but RuntimeNvidia mean a
// runtime without additions, as podrun is.
func RuntimeHandlers() []string { return []string{"crun", RuntimeNvidia, "podrun", "runc"} }

// DeviceAnnotationPrefix begins the annotations that request devices for all containers.
const DeviceAnnotationPrefix = "cdi.k8s.io/"
