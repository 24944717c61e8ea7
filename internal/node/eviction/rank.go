package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
)

// Usage is what a pod uses of a resource: bytes, inodes or processes.
type Usage struct {
	Total      int64
	Containers map[string]int64 // nil: not known
}

// Candidate is a running pod.
type Candidate struct {
	Pod   *corev1.Pod
	Usage *Usage // of the resource that is low; nil: not known
}

// Rank returns the pods that may be evicted because a resource is low, in the order of their eviction (kubelet:
// pkg/kubelet/eviction/helpers.go, rankMemoryPressure, rankDiskPressureFunc and rankPIDPressure). First are pods whose usage
// is not known, then those that exceed their requests. Among these the lower priority, and then the larger excess, comes
// first. Of processes, which have no requests, priority is first.
func Rank(name corev1.ResourceName, pods []Candidate) []Candidate {
	pods = slices.DeleteFunc(slices.Clone(pods), func(c Candidate) bool { return isCritical(c.Pod) })
	excess := func(c Candidate) int64 { return c.Usage.Total - request(c.Pod, name) }
	slices.SortStableFunc(pods, func(a, b Candidate) int {
		priority := cmp.Compare(scheduling.PodPriority(a.Pod), scheduling.PodPriority(b.Pod))
		first := compareBools(a.Usage == nil, b.Usage == nil)
		last := 0
		if a.Usage != nil && b.Usage != nil {
			first, last = compareBools(excess(a) > 0, excess(b) > 0), cmp.Compare(excess(b), excess(a))
		}
		if name == PIDs {
			return cmp.Or(priority, compareBools(a.Usage == nil, b.Usage == nil), last)
		}
		return cmp.Or(first, priority, last)
	})
	return pods
}

// messageStart begins the messages of pods that were evicted because the node was low on a resource.
const messageStart = "The node was low on resource: "

// IsMessage reports whether a message is one of Message.
func IsMessage(message string) bool { return strings.HasPrefix(message, messageStart) }

// Message returns the message of a pod that is evicted because of the first threshold in met, in the words of the kubelet
// (pkg/kubelet/eviction/helpers.go, evictionMessage).
func Message(met []Threshold, o Observations, c Candidate) string {
	name, seen := met[0].Signal.Resource(), o[met[0].Signal]
	threshold, format := met[0].quantity(seen.Capacity), resource.BinarySI
	if name == Inodes || name == PIDs {
		format = resource.DecimalSI
	}
	var b strings.Builder
	fmt.Fprintf(&b, messageStart+"%v. Threshold quantity: %v, available: %v. ", name, &threshold, resource.NewQuantity(seen.Available, format))
	if c.Usage == nil {
		return b.String()
	}
	if r := c.Pod.Spec.Resources; r != nil && name == corev1.ResourceMemory {
		if q, ok := r.Requests[name]; ok {
			fmt.Fprintf(&b, "Pod %s was using %v, request is %v, has larger consumption of %v. ", c.Pod.Name, resource.NewQuantity(c.Usage.Total, format), &q, name)
		}
	}
	for _, container := range slices.Concat(c.Pod.Spec.Containers, c.Pod.Spec.InitContainers) {
		requested := container.Resources.Requests[name]
		if used := c.Usage.Containers[container.Name]; requested.CmpInt64(used) < 0 {
			fmt.Fprintf(&b, "Container %s was using %v, request is %v, has larger consumption of %v. ", container.Name, resource.NewQuantity(used, format), &requested, name)
		}
	}
	return b.String()
}
