package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Devices of the host are asked for by the names that the Container Device Interface gives
// them, vendor.com/class=name: among a container's limits, with the quantity 1, or, for
// every container of the pod, in annotations, as CRI has them for one container.

const deviceAnnotation = "cdi.k8s.io/"

// deviceName is what the specification of the interface allows.
var deviceName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?/[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?=[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`)
})

// isDevice says whether a resource is a device's name, be it well formed or not: no
// resource of Kubernetes has a = in its name.
func isDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "=") }

// Devices are the names of the devices that a container asks for, itself and by its pod's
// annotations, each once.
func Devices(p *corev1.Pod, c *corev1.Container) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		if strings.HasPrefix(key, deviceAnnotation) {
			for name := range strings.SplitSeq(p.Annotations[key], ",") {
				add(name)
			}
		}
	}
	for _, name := range sorted(c.Resources.Limits) {
		if isDevice(name) {
			add(string(name))
		}
	}
	return names
}

// validateDevice checks one among resources.
func validateDevice(name corev1.ResourceName, list corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !deviceName().MatchString(string(name)) {
		errs = append(errs, field.Invalid(at, string(name), "a device's name is vendor.com/class=name"))
	}
	if q := list[name]; q.CmpInt64(1) != 0 {
		errs = append(errs, field.Invalid(at, q.String(), "a device by its name is there once: must be 1"))
	}
	return errs
}

func validateDeviceAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, deviceAnnotation) {
			continue
		}
		for name := range strings.SplitSeq(annotations[key], ",") {
			if !deviceName().MatchString(name) {
				errs = append(errs, field.Invalid(path.Key(key), name, "a device's name is vendor.com/class=name"))
			}
		}
	}
	return errs
}
