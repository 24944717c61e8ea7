package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Volumes of files: what their sources may say.

func fileMode(mode *int32, at *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

func fileUser(user *int64, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		for _, msg := range validation.IsValidUserID(*user) {
			errs = append(errs, field.Invalid(at, *user, msg))
		}
	}
	return errs
}

// sourceName checks the name of an object of which files are made.
func sourceName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return objectName(name, at)
}

func validateSecretSource(s *corev1.SecretVolumeSource, at *field.Path) field.ErrorList {
	errs := sourceName(s.SecretName, at.Child("secretName"))
	errs = append(errs, fileMode(s.DefaultMode, at.Child("defaultMode"))...)
	errs = append(errs, fileUser(s.DefaultUser, at.Child("defaultUser"))...)
	return append(errs, validateItems(s.Items, sets.New[string](), at.Child("items"))...)
}

func validateConfigMapSource(c *corev1.ConfigMapVolumeSource, at *field.Path) field.ErrorList {
	errs := sourceName(c.Name, at.Child("name"))
	errs = append(errs, fileMode(c.DefaultMode, at.Child("defaultMode"))...)
	errs = append(errs, fileUser(c.DefaultUser, at.Child("defaultUser"))...)
	return append(errs, validateItems(c.Items, sets.New[string](), at.Child("items"))...)
}

// validateItems checks keys that become files. Two at one path would be one file: the
// API server says so of projected volumes only.
func validateItems(items []corev1.KeyToPath, taken sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		one := at.Index(i)
		if item.Key == "" {
			errs = append(errs, field.Required(one.Child("key"), ""))
		}
		errs = append(errs, filePath(item.Path, taken, one.Child("path"))...)
		errs = append(errs, fileMode(item.Mode, one.Child("mode"))...)
		errs = append(errs, fileUser(item.User, one.Child("user"))...)
	}
	return errs
}

// filePath checks the path of a file in a volume, and that no other has it, or is a
// directory in it. As for the API server, control characters are characters of a name.
func filePath(path string, taken sets.Set[string], at *field.Path) field.ErrorList {
	if path == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := append(descending(path, at), noNUL(path, at)...)
	clean := strings.Trim(mountPoint(path), "/")
	switch {
	case strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../"):
		errs = append(errs, field.Invalid(at, path, "must not start with '..'"))
	case len(errs) > 0:
	case clean == "" || len(path) > 4096 || slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return len(s) > 255 }):
		errs = append(errs, field.Invalid(at, clip(path, 60), "is no path of a file"))
	case taken.Has(clean):
		errs = append(errs, field.Invalid(at, path, "conflicting duplicate paths"))
	default:
		for other := range taken {
			if strings.HasPrefix(other, clean+"/") || strings.HasPrefix(clean, other+"/") {
				errs = append(errs, field.Invalid(at, path, "conflicts with the path "+other+": one is a directory of the other"))
				break
			}
		}
		taken.Insert(clean)
	}
	return errs
}

func validateDownward(d *corev1.DownwardAPIVolumeSource, at *field.Path) field.ErrorList {
	errs := fileMode(d.DefaultMode, at.Child("defaultMode"))
	errs = append(errs, fileUser(d.DefaultUser, at.Child("defaultUser"))...)
	return append(errs, validateDownwardItems(d.Items, sets.New[string](), at.Child("items"))...)
}

func validateDownwardItems(items []corev1.DownwardAPIVolumeFile, taken sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range items {
		one := at.Index(i)
		errs = append(errs, filePath(f.Path, taken, one.Child("path"))...)
		switch {
		case f.FieldRef != nil:
			errs = append(errs, validateFieldRefOf(f.FieldRef, volumeFieldPaths, one.Child("fieldRef"))...)
			if f.ResourceFieldRef != nil {
				errs = append(errs, field.Invalid(one, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(f.ResourceFieldRef, one.Child("resourceFieldRef"))...)
			if f.ResourceFieldRef.ContainerName == "" {
				errs = append(errs, field.Required(one.Child("resourceFieldRef", "containerName"), ""))
			}
		default:
			errs = append(errs, field.Required(one, "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, fileMode(f.Mode, one.Child("mode"))...)
		errs = append(errs, fileUser(f.User, one.Child("user"))...)
	}
	return errs
}

// volumeFieldPaths are the fields of a pod that may be files.
var volumeFieldPaths = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

func validateProjected(p *corev1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := fileMode(p.DefaultMode, at.Child("defaultMode"))
	errs = append(errs, fileUser(p.DefaultUser, at.Child("defaultUser"))...)
	taken := sets.New[string]()
	for i, s := range p.Sources {
		one, n := at.Child("sources").Index(i), 0
		if s.Secret != nil {
			n++
			errs = append(errs, sourceName(s.Secret.Name, one.Child("secret", "name"))...)
			errs = append(errs, validateItems(s.Secret.Items, taken, one.Child("secret", "items"))...)
		}
		if s.ConfigMap != nil {
			n++
			errs = append(errs, sourceName(s.ConfigMap.Name, one.Child("configMap", "name"))...)
			errs = append(errs, validateItems(s.ConfigMap.Items, taken, one.Child("configMap", "items"))...)
		}
		if s.DownwardAPI != nil {
			n++
			errs = append(errs, validateDownwardItems(s.DownwardAPI.Items, taken, one.Child("downwardAPI", "items"))...)
		}
		if n > 1 {
			errs = append(errs, field.Forbidden(one, "may not specify more than 1 volume type per source"))
		}
	}
	return errs
}
