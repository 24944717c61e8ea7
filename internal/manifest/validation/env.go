package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// envFieldPaths are the field paths that the API accepts in a variable, except of labels and
// annotations. The support table has those that podrun accepts.
var envFieldPaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid",
	"spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, e := range env {
		fieldPath := path.Index(i)
		errs = append(errs, checkRequired(e.Name, fieldPath.Child("name"), validation.IsRelaxedEnvVarName)...)
		errs = append(errs, validateNoNUL(e.Value, fieldPath.Child("value"))...)
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(e, fieldPath.Child("valueFrom"))...)
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
	fieldPath := path.Child("fieldPath")
	switch {
	case ref.FieldPath == "":
		return field.ErrorList{field.Required(fieldPath, "")}
	case ref.APIVersion != "v1":
		return field.ErrorList{field.Invalid(fieldPath, ref.FieldPath, "error converting fieldPath: unsupported pod version: "+ref.APIVersion)}
	}
	if of, key, ok := podutil.SplitSubscriptedPath(ref.FieldPath); ok {
		switch of {
		case "metadata.labels":
			return checkRule(key, path, validation.IsQualifiedName)
		case "metadata.annotations":
			return checkRule(strings.ToLower(key), path, validation.IsQualifiedName)
		}
		return field.ErrorList{field.Invalid(fieldPath, ref.FieldPath, "error converting fieldPath: field label does not support subscript: "+ref.FieldPath)}
	}
	if !slices.Contains(paths, ref.FieldPath) {
		return field.ErrorList{field.NotSupported(fieldPath, ref.FieldPath, append(slices.Clone(paths), "metadata.labels['KEY']", "metadata.annotations['KEY']"))}
	}
	return nil
}

// isObjectName is the rule for the name of a referenced ConfigMap or Secret.
func isObjectName(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := checkRule(name, path.Child("name"), isObjectName)
	return append(errs, checkRequired(key, path.Child("key"), validation.IsConfigMapKey)...)
}

func validateFileRef(r *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	errs := checkRequired(r.Key, path.Child("key"), validation.IsRelaxedEnvVarName)
	errs = append(errs, checkRequired(r.VolumeName, path.Child("volumeName"), validation.IsDNS1123Label)...)
	fieldPath := path.Child("path")
	if r.Path == "" {
		return append(errs, field.Required(fieldPath, ""))
	}
	if bad := validateNoDotDot(r.Path, fieldPath); len(bad) > 0 {
		return append(errs, bad...)
	}
	return append(errs, validateNoControl(r.Path, fieldPath)...)
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
				fieldPath := path.Child(list).Index(i).Child("env").Index(j).Child("valueFrom", "fileKeyRef", "volumeName")
				switch k := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name }); {
				case k < 0:
					errs = append(errs, field.NotFound(fieldPath, name))
				case s.Volumes[k].EmptyDir == nil:
					errs = append(errs, field.Invalid(fieldPath, name, "referenced volume must be of type emptyDir"))
				}
			}
		}
	}
	return errs
}

func validateEnvFrom(list []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range list {
		fieldPath, sources := path.Index(i), 0
		errs = append(errs, checkOptional(f.Prefix, fieldPath.Child("prefix"), validation.IsRelaxedEnvVarName)...)
		if f.ConfigMapRef != nil {
			sources++
			errs = append(errs, checkRequired(f.ConfigMapRef.Name, fieldPath.Child("configMapRef", "name"), isObjectName)...)
		}
		if f.SecretRef != nil {
			sources++
			errs = append(errs, checkRequired(f.SecretRef.Name, fieldPath.Child("secretRef", "name"), isObjectName)...)
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
