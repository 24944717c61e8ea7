package validation

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
)

// Checks of the sources of volumes of files.

func validateFileMode(mode *int32, fieldPath *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(fieldPath, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

// validateOwnership checks the mode and the owner of files.
func validateOwnership(mode *int32, user *int64, modePath, userPath *field.Path) field.ErrorList {
	return append(validateFileMode(mode, modePath), checkPointer(user, userPath, validation.IsValidUserID)...)
}

func validateDefaults(mode *int32, user *int64, fieldPath *field.Path) field.ErrorList {
	return validateOwnership(mode, user, fieldPath.Child("defaultMode"), fieldPath.Child("defaultUser"))
}

func validateSecretSource(s *corev1.SecretVolumeSource, fieldPath *field.Path) field.ErrorList {
	errs := checkRequired(s.SecretName, fieldPath.Child("secretName"), isObjectName)
	errs = append(errs, validateDefaults(s.DefaultMode, s.DefaultUser, fieldPath)...)
	return append(errs, validateItems(s.Items, sets.New[string](), fieldPath.Child("items"))...)
}

func validateConfigMapSource(c *corev1.ConfigMapVolumeSource, fieldPath *field.Path) field.ErrorList {
	errs := checkRequired(c.Name, fieldPath.Child("name"), isObjectName)
	errs = append(errs, validateDefaults(c.DefaultMode, c.DefaultUser, fieldPath)...)
	return append(errs, validateItems(c.Items, sets.New[string](), fieldPath.Child("items"))...)
}

// validateItems checks keys that become files. Two with one path would be one file: the API server refuses
// that in projected volumes only.
func validateItems(items []corev1.KeyToPath, taken sets.Set[string], fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		itemPath := fieldPath.Index(i)
		if item.Key == "" {
			errs = append(errs, field.Required(itemPath.Child("key"), ""))
		}
		errs = append(errs, validateFilePath(item.Path, taken, itemPath.Child("path"))...)
		errs = append(errs, validateOwnership(item.Mode, item.User, itemPath.Child("mode"), itemPath.Child("user"))...)
	}
	return errs
}

// validateFilePath checks the path of a file in a volume, and that no other file has the path, or has it as
// a directory. As in the API server, control characters are allowed.
func validateFilePath(path string, taken sets.Set[string], fieldPath *field.Path) field.ErrorList {
	if path == "" {
		return field.ErrorList{field.Required(fieldPath, "")}
	}
	errs := append(validateRelativePath(path, fieldPath), validateNoNUL(path, fieldPath)...)
	clean := strings.Trim(podutil.MountPoint(path), "/")
	switch {
	case strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../"):
		errs = append(errs, field.Invalid(fieldPath, path, "must not start with '..'"))
	case len(errs) > 0:
	case clean == "" || len(path) > 4096 || slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return len(s) > 255 }):
		errs = append(errs, field.Invalid(fieldPath, apiutil.Truncate(path, 60), "is not a valid file path"))
	case taken.Has(clean):
		errs = append(errs, field.Invalid(fieldPath, path, "conflicting duplicate paths"))
	default:
		for other := range taken {
			if strings.HasPrefix(other, clean+"/") || strings.HasPrefix(clean, other+"/") {
				errs = append(errs, field.Invalid(fieldPath, path, "conflicts with the path "+other+": one is a directory of the other"))
				break
			}
		}
		taken.Insert(clean)
	}
	return errs
}

func validateDownward(d *corev1.DownwardAPIVolumeSource, fieldPath *field.Path) field.ErrorList {
	errs := validateDefaults(d.DefaultMode, d.DefaultUser, fieldPath)
	return append(errs, validateDownwardItems(d.Items, sets.New[string](), fieldPath.Child("items"))...)
}

func validateDownwardItems(items []corev1.DownwardAPIVolumeFile, taken sets.Set[string], fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range items {
		itemPath := fieldPath.Index(i)
		errs = append(errs, validateFilePath(f.Path, taken, itemPath.Child("path"))...)
		switch {
		case f.FieldRef != nil:
			errs = append(errs, validateFieldRefOf(f.FieldRef, volumeFieldPaths, itemPath.Child("fieldRef"))...)
			if f.ResourceFieldRef != nil {
				errs = append(errs, field.Invalid(itemPath, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(f.ResourceFieldRef, itemPath.Child("resourceFieldRef"))...)
			if f.ResourceFieldRef.ContainerName == "" {
				errs = append(errs, field.Required(itemPath.Child("resourceFieldRef", "containerName"), ""))
			}
		default:
			errs = append(errs, field.Required(itemPath, "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, validateOwnership(f.Mode, f.User, itemPath.Child("mode"), itemPath.Child("user"))...)
	}
	return errs
}

// volumeFieldPaths are the fields of a pod that can be files.
var volumeFieldPaths = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

func validateProjected(p *corev1.ProjectedVolumeSource, fieldPath *field.Path) field.ErrorList {
	errs := validateDefaults(p.DefaultMode, p.DefaultUser, fieldPath)
	taken := sets.New[string]()
	for i, s := range p.Sources {
		itemPath, n := fieldPath.Child("sources").Index(i), 0
		if s.Secret != nil {
			n++
			errs = append(errs, checkRequired(s.Secret.Name, itemPath.Child("secret", "name"), isObjectName)...)
			errs = append(errs, validateItems(s.Secret.Items, taken, itemPath.Child("secret", "items"))...)
		}
		if s.ConfigMap != nil {
			n++
			errs = append(errs, checkRequired(s.ConfigMap.Name, itemPath.Child("configMap", "name"), isObjectName)...)
			errs = append(errs, validateItems(s.ConfigMap.Items, taken, itemPath.Child("configMap", "items"))...)
		}
		if s.DownwardAPI != nil {
			n++
			errs = append(errs, validateDownwardItems(s.DownwardAPI.Items, taken, itemPath.Child("downwardAPI", "items"))...)
		}
		if n > 1 {
			errs = append(errs, field.Forbidden(itemPath, "may not specify more than 1 volume type per source"))
		}
	}
	return errs
}

// validateVolumes checks volumes. It also returns those that can be mounted, by name: one with a mistake
// cannot.
func validateVolumes(pod string, volumes []corev1.Volume, fieldPath *field.Path) (good map[string]*corev1.Volume, errs field.ErrorList) {
	good = map[string]*corev1.Volume{}
	names, made := sets.New[string](), sets.New[string]()
	for _, v := range volumes {
		if v.Ephemeral != nil {
			made.Insert(pod + "-" + v.Name)
		}
	}
	for i := range volumes {
		v, itemPath := &volumes[i], fieldPath.Index(i)
		bad := validateUniqueName(v.Name, names, itemPath.Child("name"))
		bad = append(bad, validateSource(pod, v, itemPath)...)
		if len(bad) == 0 {
			names.Insert(v.Name)
			good[v.Name] = v
		}
		errs = append(errs, bad...)
		if c := v.PersistentVolumeClaim; c != nil && made.Has(c.ClaimName) {
			errs = append(errs, field.Invalid(itemPath.Child("persistentVolumeClaim", "claimName"), c.ClaimName, "must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return good, errs
}

// source is one kind of volume that a Volume may have.
type source struct {
	name  string
	set   bool
	check func(path *field.Path) field.ErrorList
}

// validateSource checks the kind of a volume, of which there may be one. Kinds that podrun refuses are not
// checked.
func validateSource(pod string, v *corev1.Volume, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	found := false
	for _, s := range []source{
		{"emptyDir", v.EmptyDir != nil, func(fieldPath *field.Path) field.ErrorList { return validateEmptyDir(v.EmptyDir, fieldPath) }},
		{"hostPath", v.HostPath != nil, func(fieldPath *field.Path) field.ErrorList { return validateHostPath(v.HostPath, fieldPath) }},
		{"secret", v.Secret != nil, func(fieldPath *field.Path) field.ErrorList { return validateSecretSource(v.Secret, fieldPath) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(fieldPath *field.Path) field.ErrorList {
			return validateClaimSource(v.PersistentVolumeClaim, fieldPath)
		}},
		{"downwardAPI", v.DownwardAPI != nil, func(fieldPath *field.Path) field.ErrorList { return validateDownward(v.DownwardAPI, fieldPath) }},
		{"configMap", v.ConfigMap != nil, func(fieldPath *field.Path) field.ErrorList { return validateConfigMapSource(v.ConfigMap, fieldPath) }},
		{"projected", v.Projected != nil, func(fieldPath *field.Path) field.ErrorList { return validateProjected(v.Projected, fieldPath) }},
		{"ephemeral", v.Ephemeral != nil, func(fieldPath *field.Path) field.ErrorList { return validateEphemeral(pod+"-"+v.Name, v, fieldPath) }},
		{"image", v.Image != nil, func(fieldPath *field.Path) field.ErrorList { return validateImageSource(v.Image, fieldPath) }},
	} {
		switch {
		case !s.set:
		case found:
			errs = append(errs, field.Forbidden(fieldPath.Child(s.name), "may not specify more than 1 volume type"))
		default:
			found = true
			errs = append(errs, s.check(fieldPath.Child(s.name))...)
		}
	}
	return errs
}

func validateEmptyDir(e *corev1.EmptyDirVolumeSource, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(fieldPath.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if e.Mode != nil && (*e.Mode < 0 || *e.Mode > 0o1777) {
		errs = append(errs, field.Invalid(fieldPath.Child("mode"), *e.Mode, "must be a number between 0 and 01777 (octal), both inclusive"))
	}
	return errs
}

var hostPathTypes = []corev1.HostPathType{
	corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
	corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
}

func validateHostPath(h *corev1.HostPathVolumeSource, fieldPath *field.Path) field.ErrorList {
	if h.Path == "" {
		return field.ErrorList{field.Required(fieldPath.Child("path"), "")}
	}
	errs := validateNoDotDot(h.Path, fieldPath.Child("path"))
	errs = append(errs, validateNoControl(h.Path, fieldPath.Child("path"))...)
	if !path.IsAbs(h.Path) { // podrun's own rule: there is no directory that it could be relative to
		errs = append(errs, field.Invalid(fieldPath.Child("path"), h.Path, "must be an absolute path"))
	}
	if h.Type != nil && !slices.Contains(hostPathTypes, *h.Type) {
		errs = append(errs, field.NotSupported(fieldPath.Child("type"), *h.Type, hostPathTypes))
	}
	return errs
}

func validateClaimSource(c *corev1.PersistentVolumeClaimVolumeSource, fieldPath *field.Path) field.ErrorList {
	// podrun's own rule: no claim can have another name, and it becomes the name of a directory.
	return checkRequired(c.ClaimName, fieldPath.Child("claimName"), validation.IsDNS1123Subdomain)
}

func validateEphemeral(claim string, v *corev1.Volume, fieldPath *field.Path) field.ErrorList {
	template := v.Ephemeral.VolumeClaimTemplate
	fieldPath = fieldPath.Child("volumeClaimTemplate")
	if template == nil {
		return field.ErrorList{field.Required(fieldPath, "")}
	}
	errs := validateClaimSpec(&template.Spec, fieldPath.Child("spec"))
	for _, msg := range validation.IsDNS1123Subdomain(claim) {
		if len(validation.IsDNS1123Label(v.Name)) == 0 {
			errs = append(errs, field.Invalid(fieldPath.Child("name"), v.Name, "PVC name \""+claim+"\": "+msg))
		}
	}
	return errs
}

func validateImageSource(i *corev1.ImageVolumeSource, fieldPath *field.Path) field.ErrorList {
	return append(validateImage(i.Reference, fieldPath.Child("reference")), pullPolicy(i.PullPolicy, fieldPath.Child("pullPolicy"))...)
}

func validateNoDotDot(value string, fieldPath *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(fieldPath, value, "must not contain '..'")}
	}
	return nil
}

// validateRelativePath checks a path inside a volume.
func validateRelativePath(value string, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if path.IsAbs(value) {
		errs = append(errs, field.Invalid(fieldPath, value, "must be a relative path"))
	}
	return append(errs, validateNoDotDot(value, fieldPath)...)
}

// validateHugeVolumes checks that the page size is one that a container may have.
func validateHugeVolumes(s *corev1.PodSpec, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range s.Volumes {
		if e := s.Volumes[i].EmptyDir; podutil.IsHugePagesVolume(e) {
			if _, err := podutil.HugePagesMediumSize(s, e.Medium); err != nil {
				errs = append(errs, field.Invalid(fieldPath.Index(i).Child("emptyDir", "medium"), e.Medium, err.Error()))
			}
		}
	}
	return errs
}
