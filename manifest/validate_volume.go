package manifest

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes also gives the volumes that can be mounted, by name: one with a
// mistake cannot.
func validateVolumes(pod string, volumes []corev1.Volume, at *field.Path) (good map[string]*corev1.Volume, errs field.ErrorList) {
	good = map[string]*corev1.Volume{}
	names, made := sets.New[string](), sets.New[string]()
	for _, v := range volumes {
		if v.Ephemeral != nil {
			made.Insert(pod + "-" + v.Name)
		}
	}
	for i := range volumes {
		v, one := &volumes[i], at.Index(i)
		bad := ownName(v.Name, names, one.Child("name"))
		bad = append(bad, validateSource(pod, v, one)...)
		if len(bad) == 0 {
			names.Insert(v.Name)
			good[v.Name] = v
		}
		errs = append(errs, bad...)
		if c := v.PersistentVolumeClaim; c != nil && made.Has(c.ClaimName) {
			errs = append(errs, field.Invalid(one.Child("persistentVolumeClaim", "claimName"), c.ClaimName, "must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return good, errs
}

// source is one kind of volume that a Volume may have.
type source struct {
	name  string
	set   bool
	check func(at *field.Path) field.ErrorList
}

// validateSource checks the kind of a volume, of which there may be one. Kinds that
// podrun refuses are not looked at.
func validateSource(pod string, v *corev1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := false
	for _, s := range []source{
		{"emptyDir", v.EmptyDir != nil, func(at *field.Path) field.ErrorList { return validateEmptyDir(v.EmptyDir, at) }},
		{"hostPath", v.HostPath != nil, func(at *field.Path) field.ErrorList { return validateHostPath(v.HostPath, at) }},
		{"secret", v.Secret != nil, func(at *field.Path) field.ErrorList { return validateSecretSource(v.Secret, at) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(at *field.Path) field.ErrorList { return validateClaimSource(v.PersistentVolumeClaim, at) }},
		{"downwardAPI", v.DownwardAPI != nil, func(at *field.Path) field.ErrorList { return validateDownward(v.DownwardAPI, at) }},
		{"configMap", v.ConfigMap != nil, func(at *field.Path) field.ErrorList { return validateConfigMapSource(v.ConfigMap, at) }},
		{"projected", v.Projected != nil, func(at *field.Path) field.ErrorList { return validateProjected(v.Projected, at) }},
		{"ephemeral", v.Ephemeral != nil, func(at *field.Path) field.ErrorList { return validateEphemeral(pod+"-"+v.Name, v, at) }},
		{"image", v.Image != nil, func(at *field.Path) field.ErrorList { return validateImageSource(v.Image, at) }},
	} {
		switch {
		case !s.set:
		case seen:
			errs = append(errs, field.Forbidden(at.Child(s.name), "may not specify more than 1 volume type"))
		default:
			seen = true
			errs = append(errs, s.check(at.Child(s.name))...)
		}
	}
	return errs
}

func validateEmptyDir(e *corev1.EmptyDirVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(at.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if e.Mode != nil && (*e.Mode < 0 || *e.Mode > 0o1777) {
		errs = append(errs, field.Invalid(at.Child("mode"), *e.Mode, "must be a number between 0 and 01777 (octal), both inclusive"))
	}
	return errs
}

var hostPathTypes = []corev1.HostPathType{
	corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
	corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
}

func validateHostPath(h *corev1.HostPathVolumeSource, at *field.Path) field.ErrorList {
	if h.Path == "" {
		return field.ErrorList{field.Required(at.Child("path"), "")}
	}
	errs := noBacksteps(h.Path, at.Child("path"))
	errs = append(errs, cleanPath(h.Path, at.Child("path"))...)
	if !path.IsAbs(h.Path) { // ours: of which directory should it be a part?
		errs = append(errs, field.Invalid(at.Child("path"), h.Path, "must be an absolute path"))
	}
	if h.Type != nil && !slices.Contains(hostPathTypes, *h.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), *h.Type, hostPathTypes))
	}
	return errs
}

func validateClaimSource(c *corev1.PersistentVolumeClaimVolumeSource, at *field.Path) field.ErrorList {
	if c.ClaimName == "" {
		return field.ErrorList{field.Required(at.Child("claimName"), "")}
	}
	// Ours: no claim can have another name, and it becomes the name of a directory.
	return named(c.ClaimName, at.Child("claimName"), validation.IsDNS1123Subdomain)
}

func validateEphemeral(claim string, v *corev1.Volume, at *field.Path) field.ErrorList {
	template := v.Ephemeral.VolumeClaimTemplate
	at = at.Child("volumeClaimTemplate")
	if template == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateClaimSpec(&template.Spec, at.Child("spec"))
	for _, msg := range validation.IsDNS1123Subdomain(claim) {
		if len(validation.IsDNS1123Label(v.Name)) == 0 {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "PVC name \""+claim+"\": "+msg))
		}
	}
	return errs
}

func validateImageSource(i *corev1.ImageVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch ref := at.Child("reference"); {
	case i.Reference == "":
		errs = append(errs, field.Required(ref, ""))
	case strings.TrimSpace(i.Reference) != i.Reference:
		errs = append(errs, field.Invalid(ref, i.Reference, "must not have leading or trailing whitespace"))
	default:
		errs = append(errs, cleanPath(i.Reference, ref)...)
	}
	return append(errs, pullPolicy(i.PullPolicy, at.Child("pullPolicy"))...)
}

func noBacksteps(value string, at *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(at, value, "must not contain '..'")}
	}
	return nil
}

// descending checks a path inside a volume.
func descending(value string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(value) {
		errs = append(errs, field.Invalid(at, value, "must be a relative path"))
	}
	return append(errs, noBacksteps(value, at)...)
}
