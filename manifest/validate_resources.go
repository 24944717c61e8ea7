package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	helpers "k8s.io/component-helpers/resource"
)

// maxCPU is how many CPUs can be counted in thousandths.
const maxCPU = math.MaxInt64 / 1000

func validateResources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateQuantities(r.Limits, path.Child("limits"))
	errs = append(errs, validateQuantities(r.Requests, path.Child("requests"))...)
	for _, name := range sorted(r.Requests) {
		request, limit := r.Requests[name], r.Limits[name]
		if _, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sorted(list) {
		q, at := list[name], path.Key(string(name))
		if isDevice(name) {
			errs = append(errs, validateDevice(name, list, at)...)
			continue
		}
		errs = append(errs, named(string(name), at, validation.IsQualifiedName)...)
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(at, q.String(), apivalidation.IsNegativeErrorMsg))
		}
		if name == corev1.ResourceCPU && q.CmpInt64(maxCPU) > 0 {
			errs = append(errs, field.Invalid(at, q.String(), fmt.Sprintf("must be less than or equal to %d", int64(maxCPU))))
		}
	}
	return errs
}

// validatePodResources holds the containers against what the pod as a whole has.
func validatePodResources(p *corev1.Pod, path *field.Path) field.ErrorList {
	r := p.Spec.Resources
	if r == nil {
		return nil
	}
	errs := validateResources(r, path)
	sum := helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{})
	for _, name := range sorted(sum) {
		if has, ok := r.Requests[name]; ok && less(has, sum[name]) {
			q := sum[name]
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), has.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", q.String())))
		}
	}
	for i, c := range p.Spec.Containers {
		for _, name := range sorted(c.Resources.Limits) {
			limit := c.Resources.Limits[name]
			if has, ok := r.Limits[name]; ok && less(has, limit) {
				at := field.NewPath("spec", "containers").Index(i).Child("resources", "limits").Key(string(name))
				errs = append(errs, field.Invalid(at, limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", has.String())))
			}
		}
	}
	return errs
}

func less(a, b resource.Quantity) bool { return a.Cmp(b) < 0 }

// sorted returns the names of a resource list, sorted.
func sorted(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
