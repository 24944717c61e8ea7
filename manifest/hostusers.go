package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateHostPID is what ValidatePodSpec of pkg/apis/core/validation says of it.
func validateHostPID(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if s.HostPID && s.ShareProcessNamespace != nil && *s.ShareProcessNamespace {
		return field.ErrorList{field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")}
	}
	return nil
}

// validateHostUsers is its namesake in pkg/apis/core/validation for a pod with users of its
// own, with what is podrun's: an ordinary user cannot map the owners of files of a disk, so
// such a pod has none but those that are made for it.
func validateHostUsers(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if s.HostUsers == nil || *s.HostUsers {
		return nil
	}
	const why = "when `hostUsers` is false"
	var errs field.ErrorList
	for name, set := range map[string]bool{"hostNetwork": s.HostNetwork, "hostPID": s.HostPID, "hostIPC": s.HostIPC} {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), why))
		}
	}
	for i, v := range s.Volumes {
		at := path.Child("volumes").Index(i)
		if v.HostPath != nil {
			errs = append(errs, field.Forbidden(at.Child("hostPath"), why+": its files belong to none of the pod's own users"))
		}
		if v.PersistentVolumeClaim != nil {
			errs = append(errs, field.Forbidden(at.Child("persistentVolumeClaim"), why+": its files belong to none of the pod's own users"))
		}
	}
	return errs
}
