package validation

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/pod"
)

// validatePersistentVolume checks a PersistentVolume (ValidatePersistentVolume in pkg/apis/core/validation of
// Kubernetes). Kinds of storage that podrun does not mount are not checked further.
func validatePersistentVolume(o *corev1.PersistentVolume) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&o.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	s, spec := &o.Spec, field.NewPath("spec")
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(spec.Child("accessModes"), ""))
	}
	errs = append(errs, validateAccessModes(s.AccessModes, spec.Child("accessModes"))...)
	capacity := spec.Child("capacity")
	if q, ok := s.Capacity[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(capacity.Key(string(corev1.ResourceStorage)), ""))
	} else if q.Sign() <= 0 {
		errs = append(errs, field.Invalid(capacity.Key(string(corev1.ResourceStorage)), q.String(), "must be greater than zero"))
	}
	errs = append(errs, oneOf(s.PersistentVolumeReclaimPolicy, spec.Child("persistentVolumeReclaimPolicy"),
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeNodeAffinity(s.NodeAffinity, spec.Child("nodeAffinity"))...)
	errs = append(errs, validateVolumeSource(s, spec)...)
	errs = append(errs, checkOptional(s.StorageClassName, spec.Child("storageClassName"), validation.IsDNS1123Subdomain)...)
	errs = append(errs, optionalOneOf(s.VolumeMode, spec.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	if c := s.ClaimRef; c != nil { // podrun's own rule: without both it reserves nothing
		fieldPath := spec.Child("claimRef")
		errs = append(errs, checkRequired(c.Namespace, fieldPath.Child("namespace"), validation.IsDNS1123Label)...)
		errs = append(errs, checkRequired(c.Name, fieldPath.Child("name"), validation.IsDNS1123Subdomain)...)
	}
	return errs
}

// validateVolumeSource checks the kind of a PersistentVolume, of which there must be one.
func validateVolumeSource(s *corev1.PersistentVolumeSpec, spec *field.Path) field.ErrorList {
	set := apiutil.SetFields(s.PersistentVolumeSource)
	if len(set) == 0 {
		return field.ErrorList{field.Required(spec, "must specify a volume type")}
	}
	var errs field.ErrorList
	for _, name := range set[1:] {
		errs = append(errs, field.Forbidden(spec.Child(name), "may not specify more than 1 volume type"))
	}
	switch {
	case s.HostPath != nil:
		errs = append(errs, validateHostPath(s.HostPath, spec.Child("hostPath"))...)
	case s.Local != nil:
		fieldPath := spec.Child("local", "path")
		if s.Local.Path == "" {
			return append(errs, field.Required(fieldPath, ""))
		}
		errs = append(errs, validateNoDotDot(s.Local.Path, fieldPath)...)
		errs = append(errs, validateNoControl(s.Local.Path, fieldPath)...)
		if !path.IsAbs(s.Local.Path) { // podrun's own rule, as for hostPath
			errs = append(errs, field.Invalid(fieldPath, s.Local.Path, "must be an absolute path"))
		}
		if s.NodeAffinity == nil || s.NodeAffinity.Required == nil {
			errs = append(errs, field.Required(spec.Child("nodeAffinity"), "Local volume requires node affinity"))
		}
	}
	return errs
}

// validateVolumeNodeAffinity checks which nodes have a volume (validateVolumeNodeAffinity, ValidateNodeSelector).
func validateVolumeNodeAffinity(a *corev1.VolumeNodeAffinity, fieldPath *field.Path) field.ErrorList {
	switch fieldPath = fieldPath.Child("required"); {
	case a == nil:
		return nil
	case a.Required == nil:
		return field.ErrorList{field.Required(fieldPath, "must specify required node constraints")}
	}
	fieldPath = fieldPath.Child("nodeSelectorTerms")
	if len(a.Required.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(fieldPath, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i, t := range a.Required.NodeSelectorTerms {
		for j := range t.MatchExpressions {
			itemPath := fieldPath.Index(i).Child("matchExpressions").Index(j)
			errs = append(errs, validateNodeRequirement(&t.MatchExpressions[j], itemPath)...)
			errs = append(errs, metavalidation.ValidateLabelName(t.MatchExpressions[j].Key, itemPath.Child("key"))...)
		}
		for j := range t.MatchFields {
			r, itemPath := &t.MatchFields[j], fieldPath.Index(i).Child("matchFields").Index(j)
			if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
				errs = append(errs, field.Invalid(itemPath.Child("operator"), r.Operator, "not a valid selector operator"))
			} else if len(r.Values) != 1 {
				errs = append(errs, field.Required(itemPath.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
			}
			if r.Key != "metadata.name" {
				errs = append(errs, field.Invalid(itemPath.Child("key"), r.Key, "not a valid field selector key"))
			}
		}
	}
	return errs
}

func validateNodeRequirement(r *corev1.NodeSelectorRequirement, fieldPath *field.Path) field.ErrorList {
	values := fieldPath.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			return field.ErrorList{field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
	default:
		return field.ErrorList{field.Invalid(fieldPath.Child("operator"), r.Operator, "not a valid selector operator")}
	}
	return nil
}

// persistentVolumeUpdate refuses other storage (ValidatePersistentVolumeUpdate), and another claim for a volume
// that is bound.
func persistentVolumeUpdate(old, next *pod.PersistentVolume) field.ErrorList {
	spec := field.NewPath("spec")
	if old.Source != next.Source || old.Path != next.Path || old.PathType != next.PathType {
		return field.ErrorList{field.Forbidden(spec.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")}
	}
	had, c := old.Claim, next.Claim
	if had != nil && had.UID != "" && c != nil && (c.Namespace != had.Namespace || c.Name != had.Name || c.UID != "" && c.UID != had.UID) {
		return field.ErrorList{field.Forbidden(spec.Child("claimRef"), "the volume is bound to "+had.Namespace+"/"+had.Name)}
	}
	return nil
}
