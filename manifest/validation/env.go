package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/manifest/podutil"
)

// envFieldPaths are the field paths that the API accepts in a variable, except those of labels and
// annotations. The support table has those that podrun accepts.
var envFieldPaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid",
	"spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, validateName(e.Name, at.Child("name"), validation.IsRelaxedEnvVarName)...)
		}
		errs = append(errs, validateNoNUL(e.Value, at.Child("value"))...)
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(e, at.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(e corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	from, sources := e.ValueFrom, 0
	for _, set := range []bool{from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil} {
		if set {
			sources++
		}
	}
	if from.FieldRef != nil {
		errs = append(errs, validateFieldRef(from.FieldRef, path.Child("fieldRef"))...)
	}
	if from.ResourceFieldRef != nil {
		errs = append(errs, validateResourceRef(from.ResourceFieldRef, path.Child("resourceFieldRef"))...)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("configMapKeyRef"))...)
	}
	if r := from.SecretKeyRef; r != nil {
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("secretKeyRef"))...)
	}
	if from.FileKeyRef != nil {
		errs = append(errs, validateFileRef(from.FileKeyRef, path.Child("fileKeyRef"))...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateFieldRef(ref *corev1.ObjectFieldSelector, path *field.Path) field.ErrorList {
	return validateFieldRefOf(ref, envFieldPaths, path)
}

// validateFieldRefOf checks a reference to one of the paths, or to a label or an
// annotation.
func validateFieldRefOf(ref *corev1.ObjectFieldSelector, paths []string, path *field.Path) field.ErrorList {
	at := path.Child("fieldPath")
	switch {
	case ref.FieldPath == "":
		return field.ErrorList{field.Required(at, "")}
	case ref.APIVersion != "v1":
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: unsupported pod version: "+ref.APIVersion)}
	}
	if of, key, ok := podutil.SplitSubscriptedPath(ref.FieldPath); ok {
		switch of {
		case "metadata.labels":
			return validateName(key, path, validation.IsQualifiedName)
		case "metadata.annotations":
			return validateName(strings.ToLower(key), path, validation.IsQualifiedName)
		}
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label does not support subscript: "+ref.FieldPath)}
	}
	if !slices.Contains(paths, ref.FieldPath) {
		return field.ErrorList{field.NotSupported(at, ref.FieldPath, append(slices.Clone(paths), "metadata.labels['KEY']", "metadata.annotations['KEY']"))}
	}
	return nil
}

// validateObjectName checks the name of a referenced ConfigMap or Secret.
func validateObjectName(name string, path *field.Path) field.ErrorList {
	return validateName(name, path, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) })
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := validateObjectName(name, path.Child("name"))
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, validateName(key, path.Child("key"), validation.IsConfigMapKey)...)
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
			errs = append(errs, validateName(f.value, at, f.rule)...)
		case slices.Contains(strings.Split(f.value, "/"), ".."):
			errs = append(errs, field.Invalid(at, f.value, "must not contain '..'"))
		default:
			errs = append(errs, validateNoControl(f.value, at)...)
		}
	}
	return errs
}

// validateFileVolumes checks that files of variables lie in emptyDir volumes.
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
		errs = append(errs, validateObjectName(name, at)...)
	}
	for i, f := range list {
		at, sources := path.Index(i), 0
		if f.Prefix != "" {
			errs = append(errs, validateName(f.Prefix, at.Child("prefix"), validation.IsRelaxedEnvVarName)...)
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
