package validation

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
)

// ValidateResize checks that the resources of a running Pod may become the resources of another with the same
// containers, as the API server does and in its words (ValidatePodResize in pkg/apis/core/validation of
// Kubernetes). Both have their defaults.
func ValidateResize(old, new *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if is, was := resources.QOSClass(new), resources.QOSClass(old); is != was {
		errs = append(errs, field.Invalid(spec, is, "Pod QOS Class may not change as a result of resizing"))
	}
	errs = append(errs, validatePodResize(old.Spec.Resources, new.Spec.Resources, spec.Child("resources"))...)
	for _, l := range []struct {
		name     string
		old, new []corev1.Container
	}{{"initContainers", old.Spec.InitContainers, new.Spec.InitContainers}, {"containers", old.Spec.Containers, new.Spec.Containers}} {
		for i := range l.old {
			errs = append(errs, validateNoneRemoved(&l.old[i].Resources, &l.new[i].Resources, spec.Child(l.name).Index(i).Child("resources"), "resource")...)
		}
	}
	return errs
}

// ValidateMutableFields checks a change of activeDeadlineSeconds and tolerations, in the words of
// the API server (ValidatePodUpdate).
func ValidateMutableFields(old, new *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	fieldPath := field.NewPath("spec", "activeDeadlineSeconds")
	switch was, is := old.ActiveDeadlineSeconds, new.ActiveDeadlineSeconds; {
	case was == nil:
	case is == nil:
		errs = append(errs, field.Invalid(fieldPath, is, "must not update from a positive integer to nil value"))
	case *is > *was:
		errs = append(errs, field.Invalid(fieldPath, *is, "must be less than or equal to previous value"))
	}
	for _, had := range old.Tolerations {
		if !slices.ContainsFunc(new.Tolerations, func(has corev1.Toleration) bool {
			has.TolerationSeconds = had.TolerationSeconds
			return reflect.DeepEqual(had, has)
		}) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
			break
		}
	}
	return errs
}

func validatePodResize(was, is *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	switch {
	case was == nil:
		return nil
	case is == nil:
		return field.ErrorList{field.Forbidden(path, "pod-level resources cannot be removed")}
	}
	return validateNoneRemoved(was, is, path, "pod-level resource")
}

// validateNoneRemoved checks that no resource is removed.
func validateNoneRemoved(was, is *corev1.ResourceRequirements, path *field.Path, what string) field.ErrorList {
	var errs field.ErrorList
	for _, l := range []struct {
		name    string
		was, is corev1.ResourceList
	}{{"requests", was.Requests, is.Requests}, {"limits", was.Limits, is.Limits}} {
		for name := range l.was {
			if _, ok := l.is[name]; !ok {
				errs = append(errs, field.Forbidden(path.Child(l.name), fmt.Sprintf("%s %s cannot be removed", what, l.name)))
				break
			}
		}
	}
	return errs
}

// validateResizePolicies checks the resize policies of all containers.
func validateResizePolicies(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range s.Containers {
		errs = append(errs, validateResizePolicy(s.Containers[i].ResizePolicy, path.Child("containers").Index(i).Child("resizePolicy"), s.RestartPolicy)...)
	}
	for i := range s.InitContainers {
		c, fieldPath := &s.InitContainers[i], path.Child("initContainers").Index(i).Child("resizePolicy")
		errs = append(errs, validateResizePolicy(c.ResizePolicy, fieldPath, s.RestartPolicy)...)
		for j, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer && !podutil.IsSidecar(c) {
				errs = append(errs, field.Invalid(fieldPath.Index(j).Child("restartPolicy"), p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	return errs
}

// validateResizePolicy is the function of that name in pkg/apis/core/validation.
func validateResizePolicy(list []corev1.ContainerResizePolicy, path *field.Path, podPolicy corev1.RestartPolicy) field.ErrorList {
	var errs field.ErrorList
	names := map[corev1.ResourceName]bool{}
	for i, p := range list {
		if names[p.ResourceName] {
			errs = append(errs, field.Duplicate(path.Index(i), p.ResourceName))
		}
		names[p.ResourceName] = true
		errs = append(errs, oneOf(p.ResourceName, path, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, oneOf(p.RestartPolicy, path, corev1.NotRequired, corev1.RestartContainer)...)
		if podPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}
