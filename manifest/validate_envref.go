package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// objectName checks the name of a ConfigMap or Secret that is referred to.
func objectName(name string, path *field.Path) field.ErrorList {
	return named(name, path, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) })
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := objectName(name, path.Child("name"))
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, named(key, path.Child("key"), validation.IsConfigMapKey)...)
}

func validateFileRef(r *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name, value string
		rule        func(string) []string
	}{{"key", r.Key, validation.IsRelaxedEnvVarName}, {"volumeName", r.VolumeName, validation.IsDNS1123Label}, {"path", r.Path, nil}} {
		switch at := path.Child(f.name); {
		case f.value == "":
			errs = append(errs, field.Required(at, ""))
		case f.rule != nil:
			errs = append(errs, named(f.value, at, f.rule)...)
		case slices.Contains(strings.Split(f.value, "/"), ".."):
			errs = append(errs, field.Invalid(at, f.value, "must not contain '..'"))
		default:
			errs = append(errs, cleanPath(f.value, at)...)
		}
	}
	return errs
}

// validateFileVolumes: files of variables lie in emptyDir volumes.
func validateFileVolumes(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for list, containers := range map[string][]corev1.Container{"initContainers": s.InitContainers, "containers": s.Containers} {
		for i := range containers {
			for j, e := range containers[i].Env {
				if e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
					continue
				}
				name := e.ValueFrom.FileKeyRef.VolumeName
				at := path.Child(list).Index(i).Child("env").Index(j).Child("valueFrom", "fileKeyRef", "volumeName")
				switch k := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name }); {
				case k < 0:
					errs = append(errs, field.NotFound(at, name))
				case s.Volumes[k].EmptyDir == nil:
					errs = append(errs, field.Invalid(at, name, "referenced volume must be of type emptyDir"))
				}
			}
		}
	}
	return errs
}

func validateEnvFrom(list []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := func(name string, at *field.Path) {
		if name == "" {
			errs = append(errs, field.Required(at, ""))
			return
		}
		errs = append(errs, objectName(name, at)...)
	}
	for i, f := range list {
		at, sources := path.Index(i), 0
		if f.Prefix != "" {
			errs = append(errs, named(f.Prefix, at.Child("prefix"), validation.IsRelaxedEnvVarName)...)
		}
		if f.ConfigMapRef != nil {
			sources++
			name(f.ConfigMapRef.Name, at.Child("configMapRef", "name"))
		}
		if f.SecretRef != nil {
			sources++
			name(f.SecretRef.Name, at.Child("secretRef", "name"))
		}
		switch sources {
		case 0:
			errs = append(errs, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		case 2:
			errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}
