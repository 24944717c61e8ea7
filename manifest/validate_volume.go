package manifest

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes also gives the names of the volumes that can be mounted: one with
// a mistake cannot.
func validateVolumes(volumes []corev1.Volume, at *field.Path) (names sets.Set[string], errs field.ErrorList) {
	names = sets.New[string]()
	for i, v := range volumes {
		bad := ownName(v.Name, names, at.Index(i).Child("name"))
		if v.EmptyDir != nil {
			bad = append(bad, validateEmptyDir(v.EmptyDir, at.Index(i).Child("emptyDir"))...)
		}
		if len(bad) == 0 {
			names.Insert(v.Name)
		}
		errs = append(errs, bad...)
	}
	return names, errs
}

func validateEmptyDir(e *corev1.EmptyDirVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	return errs
}

func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	points := sets.New[string]()
	for i, m := range mounts {
		name, point := at.Index(i).Child("name"), at.Index(i).Child("mountPath")
		if m.Name == "" {
			errs = append(errs, field.Required(name, ""))
		}
		if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(name, m.Name))
		}
		// Two spellings of one place, and the root itself, are podrun's own rules.
		clean := mountPoint(m.MountPath)
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(point, ""))
		case clean == "/":
			errs = append(errs, field.Invalid(point, m.MountPath, "must not be the root directory"))
		case points.Has(clean):
			errs = append(errs, field.Invalid(point, m.MountPath, "must be unique"))
		}
		points.Insert(clean)
		errs = append(errs, cleanPath(m.MountPath, point)...)
	}
	return errs
}

// mountPoint gives where a mountPath leads. A relative one begins at the root, as
// in the kubelet.
func mountPoint(mountPath string) string { return path.Clean("/" + mountPath) }
