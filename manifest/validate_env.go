package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// envFieldPaths are the field paths that the API takes in a variable, those of
// labels and annotations aside. Which of them podrun takes is in the support table.
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
			errs = append(errs, named(e.Name, at.Child("name"), validation.IsRelaxedEnvVarName)...)
		}
		errs = append(errs, noNUL(e.Value, at.Child("value"))...)
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
	if of, key, ok := subscript(ref.FieldPath); ok {
		switch of {
		case "metadata.labels":
			return named(key, path, validation.IsQualifiedName)
		case "metadata.annotations":
			return named(strings.ToLower(key), path, validation.IsQualifiedName)
		}
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label does not support subscript: "+ref.FieldPath)}
	}
	if !slices.Contains(paths, ref.FieldPath) {
		return field.ErrorList{field.NotSupported(at, ref.FieldPath, append(slices.Clone(paths), "metadata.labels['KEY']", "metadata.annotations['KEY']"))}
	}
	return nil
}

// subscript takes metadata.labels['key'] apart.
func subscript(fieldPath string) (of, key string, ok bool) {
	rest, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return fieldPath, "", false
	}
	of, key, ok = strings.Cut(rest, "['")
	return of, key, ok && of != ""
}

// fieldValue gives the value of a field path that validation let pass.
func fieldValue(p *corev1.Pod, fieldPath string) (string, error) {
	if of, key, ok := subscript(fieldPath); ok {
		switch of {
		case "metadata.labels":
			return p.Labels[key], nil
		case "metadata.annotations":
			return p.Annotations[key], nil
		}
	}
	switch fieldPath {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	}
	return "", fmt.Errorf("resolve fieldRef: %s is not supported yet", fieldPath)
}
