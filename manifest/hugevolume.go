package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// isHuge says whether an emptyDir is of huge pages.
func isHuge(e *corev1.EmptyDirVolumeSource) bool {
	return e != nil && strings.HasPrefix(string(e.Medium), string(corev1.StorageMediumHugePages))
}

// mediumSize is the size of an emptyDir's pages: its own, or that of the only ones that
// containers have (kubelet: getPageSizeMountOption in pkg/volume/emptydir, which says it
// when the pod starts).
func mediumSize(s *corev1.PodSpec, medium corev1.StorageMedium) (int64, error) {
	var sizes []int64
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits {
				if size, ok := pageSize(name); ok && !slices.Contains(sizes, size) {
					sizes = append(sizes, size)
				}
			}
		}
	}
	text, own := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	switch {
	case own:
		size, ok := pageSize(corev1.ResourceName(corev1.ResourceHugePagesPrefix + text))
		if !ok || !slices.Contains(sizes, size) {
			return 0, fmt.Errorf("no container has a limit of hugepages-%s", text)
		}
		return size, nil
	case len(sizes) == 0:
		return 0, errors.New("no container has a limit of huge pages")
	case len(sizes) > 1:
		return 0, errors.New("containers have huge pages of several sizes: say which, as in HugePages-2Mi")
	}
	return sizes[0], nil
}

// validateHugeVolumes: pages must be of a size that a container may have.
func validateHugeVolumes(s *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range s.Volumes {
		if e := s.Volumes[i].EmptyDir; isHuge(e) {
			if _, err := mediumSize(s, e.Medium); err != nil {
				errs = append(errs, field.Invalid(at.Index(i).Child("emptyDir", "medium"), e.Medium, err.Error()))
			}
		}
	}
	return errs
}
