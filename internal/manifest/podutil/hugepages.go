package podutil

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// IsHugePagesVolume reports whether an emptyDir uses huge pages.
func IsHugePagesVolume(e *corev1.EmptyDirVolumeSource) bool {
	return e != nil && strings.HasPrefix(string(e.Medium), string(corev1.StorageMediumHugePages))
}

// HugePagesMediumSize returns the page size of an emptyDir: its own, or the only one that the containers use
// (kubelet: getPageSizeMountOption in pkg/volume/emptydir, which reports an error when the pod starts).
func HugePagesMediumSize(s *corev1.PodSpec, medium corev1.StorageMedium) (int64, error) {
	var sizes []int64
	for c := range Containers(s) {
		for name := range c.Resources.Limits {
			if size, ok := HugePageSize(name); ok && !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	text, sized := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	switch {
	case sized:
		size, ok := HugePageSize(corev1.ResourceName(corev1.ResourceHugePagesPrefix + text))
		if !ok || !slices.Contains(sizes, size) {
			return 0, fmt.Errorf("no container has a limit of hugepages-%s", text)
		}
		return size, nil
	case len(sizes) == 0:
		return 0, errors.New("no container has a limit of huge pages")
	case len(sizes) > 1:
		return 0, errors.New("containers have huge pages of several sizes: name one, as in HugePages-2Mi")
	}
	return sizes[0], nil
}

// HugePageSize returns the size of a page in bytes, if name is a resource of huge pages.
func HugePageSize(name corev1.ResourceName) (int64, bool) {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() <= 0 {
		return 0, false
	}
	return q.Value(), true
}
