package validation

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// maxCPU is the highest number of CPUs that an int64 can hold in thousandths.
const maxCPU = math.MaxInt64 / 1000

// pidsRange has the limits of processes and threads that are allowed.
type pidsRange struct{ least, most int64 }

var (
	containerPids = pidsRange{1, 4 << 20}    // the kernel's maximum (PID_MAX_LIMIT)
	podPids       = pidsRange{128, 16 << 10} // Kubernetes' (KEP-6063)
)

func validateResources(r *corev1.ResourceRequirements, pids pidsRange, path *field.Path) field.ErrorList {
	errs := validateQuantities(r.Limits, pids, path.Child("limits"))
	errs = append(errs, validateQuantities(r.Requests, pids, path.Child("requests"))...)
	for _, name := range podutil.SortedResourceNames(r.Requests) {
		request, limit := r.Requests[name], r.Limits[name]
		if podutil.IsDeviceKind(name) {
			errs = append(errs, validateNotOvercommitted(r, name, path)...)
			continue
		}
		if _, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, pids pidsRange, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range podutil.SortedResourceNames(list) {
		q, fieldPath := list[name], path.Key(string(name))
		if podutil.IsDeviceName(name) {
			errs = append(errs, validateDevice(name, list, fieldPath)...)
			continue
		}
		if name == podutil.ResourcePids && (q.CmpInt64(pids.least) < 0 || q.CmpInt64(pids.most) > 0 || q.MilliValue()%1000 != 0) {
			errs = append(errs, field.Invalid(fieldPath, q.String(), "must be an integer, "+validation.InclusiveRangeError(int(pids.least), int(pids.most))))
			continue
		}
		errs = append(errs, checkRule(string(name), fieldPath, validation.IsQualifiedName)...)
		errs = append(errs, validateDeviceKind(name, q, fieldPath)...)
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(fieldPath, q.String(), apivalidation.IsNegativeErrorMsg))
		}
		if name == corev1.ResourceCPU && q.CmpInt64(maxCPU) > 0 {
			errs = append(errs, field.Invalid(fieldPath, q.String(), fmt.Sprintf("must be less than or equal to %d", int64(maxCPU))))
		}
	}
	return errs
}

// validatePodResources checks the containers against the pod-level resources.
func validatePodResources(p *corev1.Pod, path *field.Path) field.ErrorList {
	r := p.Spec.Resources
	if r == nil {
		return nil
	}
	errs := validateResources(r, podPids, path)
	sum := helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{})
	for _, name := range podutil.SortedResourceNames(sum) {
		if has, ok := r.Requests[name]; ok && less(has, sum[name]) {
			q := sum[name]
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), has.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", q.String())))
		}
	}
	for i, c := range p.Spec.Containers {
		for _, name := range podutil.SortedResourceNames(c.Resources.Limits) {
			limit := c.Resources.Limits[name]
			if has, ok := r.Limits[name]; ok && less(has, limit) {
				fieldPath := field.NewPath("spec", "containers").Index(i).Child("resources", "limits").Key(string(name))
				errs = append(errs, field.Invalid(fieldPath, limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", has.String())))
			}
		}
	}
	return errs
}

func less(a, b resource.Quantity) bool { return a.Cmp(b) < 0 }

// Devices of the host are requested by their names in the Container Device Interface, vendor.com/class=name:
// among a container's limits, with the quantity 1, or, for every container of the pod, in annotations, as
// CRI has them for one container.

// deviceName matches the names that the interface's specification allows.
var deviceName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?/[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?=[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`)
})

// validateDevice checks a device among the resources.
func validateDevice(name corev1.ResourceName, list corev1.ResourceList, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !deviceName().MatchString(string(name)) {
		errs = append(errs, field.Invalid(fieldPath, string(name), "a device's name is vendor.com/class=name"))
	}
	if q := list[name]; q.CmpInt64(1) != 0 {
		errs = append(errs, field.Invalid(fieldPath, q.String(), "must be 1: a CDI device cannot be requested more than once"))
	}
	return errs
}

// validateDeviceKind checks a kind of devices, requested by number (validateContainerResourceName and
// ValidateResourceQuantityValue in pkg/apis/core/validation). CDI allows fewer names than Kubernetes.
func validateDeviceKind(name corev1.ResourceName, q resource.Quantity, fieldPath *field.Path) field.ErrorList {
	switch {
	case !strings.Contains(string(name), "/"):
		return nil
	case !podutil.IsDeviceKind(name):
		return field.ErrorList{field.Invalid(fieldPath, string(name), "doesn't follow extended resource name standard")}
	case !deviceName().MatchString(string(name) + "=0"):
		return field.ErrorList{field.Invalid(fieldPath, string(name), "a kind of devices is vendor.com/class; both begin with a letter")}
	case q.MilliValue()%1000 != 0:
		return field.ErrorList{field.Invalid(fieldPath, q.String(), "must be an integer")}
	}
	return nil
}

// validateNotOvercommitted checks that a resource's request equals its limit
// (ValidateContainerResourceRequirements in pkg/apis/core/validation).
func validateNotOvercommitted(r *corev1.ResourceRequirements, name corev1.ResourceName, path *field.Path) field.ErrorList {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	switch {
	case !limited:
		return field.ErrorList{field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources")}
	case request.Cmp(limit) != 0:
		return field.ErrorList{field.Invalid(path.Child("requests"), request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))}
	}
	return nil
}

func validateDeviceAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(key, podutil.DeviceAnnotationPrefix) {
			continue
		}
		for name := range strings.SplitSeq(annotations[key], ",") {
			if !deviceName().MatchString(name) {
				errs = append(errs, field.Invalid(path.Key(key), name, "a device's name is vendor.com/class=name"))
			}
		}
	}
	return errs
}

// validateHugePages checks huge pages as ValidateContainerResourceRequirements in pkg/apis/core/validation
// does.
func validateHugePages(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	any, base := false, false
	for _, l := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range podutil.SortedResourceNames(l.list) {
			base = base || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			size, ok := podutil.HugePageSize(name)
			if !ok {
				continue
			}
			any = true
			q, fieldPath := l.list[name], path.Child(l.name).Key(string(name))
			if q.Value()%size != 0 {
				errs = append(errs, field.Invalid(fieldPath, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name)))
			}
			if l.name == "requests" {
				errs = append(errs, validateNotOvercommitted(r, name, path)...)
			}
		}
	}
	if any && !base {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return errs
}

// validateResourceRef is validateContainerResourceFieldSelector of
// pkg/apis/core/validation.
func validateResourceRef(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	return append(validateResource(ref.Resource, path.Child("resource")), validateDivisor(ref, path.Child("divisor"))...)
}

// resourceRefs returns the resources that the API accepts, except huge pages.
func resourceRefs() []string {
	return []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}
}

func hugePagesRef(name string) bool {
	return strings.HasPrefix(name, "limits.hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

func validateResource(name string, path *field.Path) field.ErrorList {
	if name != "" && hugePagesRef(name) {
		return nil
	}
	return oneOf(name, path, resourceRefs()...)
}

func validateDivisor(ref *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	const sizes = " 1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei "
	if ref.Divisor.IsZero() {
		return nil
	}
	_, of, _ := strings.Cut(ref.Resource, ".")
	divisor := " " + ref.Divisor.String() + " "
	switch {
	case of == "cpu" && !strings.Contains(" 1m 1 ", divisor):
		return field.ErrorList{field.Invalid(path, ref.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")}
	case of == "cpu" || strings.Contains(sizes, divisor):
		return nil
	case of == "memory":
		of = "memory"
	case of == "ephemeral-storage":
		of = "local ephemeral storage"
	case hugePagesRef(ref.Resource):
		of = "hugepages"
	default:
		return nil // the resource itself is wrong
	}
	return field.ErrorList{field.Invalid(path, ref.Resource, "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "+of+" resource")}
}
