package podutil

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ResourcePids is the limit of processes and threads of a pod or a container. Kubernetes has it for pods (KEP-6063);
// for containers it is podrun's own.
const ResourcePids corev1.ResourceName = "pids"

// SortedResourceNames returns the names of a resource list, sorted.
func SortedResourceNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// ReferencedResource returns the request or limit of a container that a resourceFieldRef names.
func ReferencedResource(c *corev1.Container, ref *corev1.ResourceFieldSelector) resource.Quantity {
	which, of, _ := strings.Cut(ref.Resource, ".")
	if which == "limits" {
		return c.Resources.Limits[corev1.ResourceName(of)]
	}
	return c.Resources.Requests[corev1.ResourceName(of)]
}

// DivideResource divides the resource that a reference names by its divisor, and rounds up, as the kubelet
// does (ExtractContainerResourceValue in pkg/api/v1/resource of Kubernetes).
func DivideResource(q resource.Quantity, ref *corev1.ResourceFieldSelector) string {
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	n, by := q.Value(), divisor.Value()
	if strings.HasSuffix(ref.Resource, ".cpu") {
		n, by = q.MilliValue(), divisor.MilliValue()
	}
	return strconv.FormatInt(int64(math.Ceil(float64(n)/float64(by))), 10)
}
