package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

func validateMounts(c *corev1.Container, volumes map[string]*corev1.Volume, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	points := sets.New[string]()
	for i := range c.VolumeMounts {
		m, itemPath := &c.VolumeMounts[i], fieldPath.Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(itemPath.Child("name"), ""))
		}
		if volumes[m.Name] == nil {
			errs = append(errs, field.NotFound(itemPath.Child("name"), m.Name))
		}
		// Refusing two spellings of one path, and the root itself, are podrun's own rules.
		clean := podutil.MountPoint(m.MountPath)
		switch point := itemPath.Child("mountPath"); {
		case m.MountPath == "":
			errs = append(errs, field.Required(point, ""))
		case clean == "/":
			errs = append(errs, field.Invalid(point, m.MountPath, "must not be the root directory"))
		case points.Has(clean):
			errs = append(errs, field.Invalid(point, m.MountPath, "must be unique"))
		}
		points.Insert(clean)
		errs = append(errs, validateNoControl(m.MountPath, itemPath.Child("mountPath"))...)
		errs = append(errs, validateSubPath(m, itemPath)...)
		errs = append(errs, validatePropagation(m, c, itemPath)...)
		errs = append(errs, validateBindOptions(m, volumes[m.Name], itemPath.Child("bindMountOptions"))...)
	}
	return errs
}

func validateSubPath(m *corev1.VolumeMount, fieldPath *field.Path) field.ErrorList {
	path, expr := fieldPath.Child("subPath"), fieldPath.Child("subPathExpr")
	errs := append(validateRelativePath(m.SubPath, path), validateNoControl(m.SubPath, path)...)
	if m.SubPathExpr != "" && m.SubPath != "" {
		errs = append(errs, field.Invalid(expr, m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
	}
	errs = append(errs, validateRelativePath(m.SubPathExpr, expr)...)
	return append(errs, validateNoControl(m.SubPathExpr, expr)...)
}

var recursions = []corev1.RecursiveReadOnlyMode{corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible}

func validatePropagation(m *corev1.VolumeMount, c *corev1.Container, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p := m.MountPropagation; p != nil {
		path := fieldPath.Child("mountPropagation")
		errs = append(errs, enumerated(*p, path, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)...)
		if *p == corev1.MountPropagationBidirectional && (c.SecurityContext == nil || !ptr.Deref(c.SecurityContext.Privileged, false)) {
			errs = append(errs, field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))
		}
	}
	path := fieldPath.Child("recursiveReadOnly")
	switch r := m.RecursiveReadOnly; {
	case r == nil, *r == corev1.RecursiveReadOnlyDisabled:
	case !slices.Contains(recursions, *r):
		errs = append(errs, field.NotSupported(path, *r, recursions))
	default:
		if !m.ReadOnly {
			errs = append(errs, field.Forbidden(path, "may only be specified when readOnly is true"))
		}
		if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
			errs = append(errs, field.Forbidden(path, "may only be specified when mountPropagation is None or not specified"))
		}
	}
	return errs
}

func validateBindOptions(m *corev1.VolumeMount, v *corev1.Volume, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, option := range m.BindMountOptions {
		errs = append(errs, oneOf(corev1.BindMountOption(option), fieldPath.Index(i), corev1.BindMountOptionNoDev, corev1.BindMountOptionNoExec, corev1.BindMountOptionNoSUID)...)
		if slices.Index(m.BindMountOptions, option) < i {
			errs = append(errs, field.Duplicate(fieldPath.Index(i), option))
		}
	}
	if len(m.BindMountOptions) > 0 && v != nil && v.Image != nil {
		errs = append(errs, field.Invalid(fieldPath, m.BindMountOptions, "bindMountOptions may not be used with image volumes"))
	}
	return errs
}
