package manifest

import (
	"math/bits"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// qosClass is the QoS class of a Pod with its defaults: Guaranteed where every
// container, init containers included, has cpu and memory limits equal to its
// requests; BestEffort where none has any; else Burstable. Pod-level resources, if
// any, decide alone (pkg/apis/core/v1/helper/qos of Kubernetes).
func qosClass(p *corev1.Pod) corev1.PodQOSClass {
	if helpers.IsPodLevelResourcesSet(p) {
		return qosOf(p.Spec.Resources)
	}
	var class corev1.PodQOSClass
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			class = sameClass(class, qosOf(&list[i].Resources))
		}
	}
	return class
}

func qosOf(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	var class corev1.PodQOSClass
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		switch {
		case !request.Equal(limit):
			class = sameClass(class, corev1.PodQOSBurstable)
		case request.IsZero():
			class = sameClass(class, corev1.PodQOSBestEffort)
		default:
			class = sameClass(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

// sameClass keeps a class as long as all agree.
func sameClass(so, far corev1.PodQOSClass) corev1.PodQOSClass {
	if so == "" || so == far {
		return far
	}
	return corev1.PodQOSBurstable
}

const (
	oomGuaranteed = -997
	oomBestEffort = 1000
	nodeCritical  = "system-node-critical"
)

// oomScoreAdj is how much sooner than others the kernel kills a container's
// processes when the machine has no memory left, as the kubelet computes it
// (pkg/kubelet/qos/policy.go) for a Pod with its defaults. nodeMemory is the
// machine's memory in bytes; 0, unknown, counts every request as nothing.
func oomScoreAdj(p *corev1.Pod, c *corev1.Container, nodeMemory int64) int {
	class := qosClass(p)
	switch {
	case p.Spec.PriorityClassName == nodeCritical || class == corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case class == corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	spare := spareMemory(p)
	score := memoryScore(memoryRequest(c)+spare, nodeMemory)
	if sidecarOf(p, c) { // one dies no sooner than the smallest app container
		score = min(score, memoryScore(smallestApp(p)+spare, nodeMemory))
	}
	return min(max(score, oomBestEffort+oomGuaranteed), oomBestEffort-1)
}

// memoryScore is 1000 for a container that asks for nothing and 0 for one that
// asks for all of the machine.
func memoryScore(request, nodeMemory int64) int {
	switch {
	case nodeMemory <= 0:
		return oomBestEffort
	case request < 0 || request >= nodeMemory: // < 0: two of them overflowed
		return 0
	}
	hi, lo := bits.Mul64(1000, uint64(request))
	share, _ := bits.Div64(hi, lo, uint64(nodeMemory))
	return 1000 - int(share)
}

func memoryRequest(c *corev1.Container) int64 { return c.Resources.Requests.Memory().Value() }

func smallestApp(p *corev1.Pod) int64 {
	least := memoryRequest(&p.Spec.Containers[0])
	for i := range p.Spec.Containers {
		least = min(least, memoryRequest(&p.Spec.Containers[i]))
	}
	return least
}

// spareMemory is each container's part of what the pod asks for beyond what its
// containers do.
func spareMemory(p *corev1.Pod) int64 {
	if p.Spec.Resources == nil || p.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	asked := helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{})
	spare := p.Spec.Resources.Requests.Memory().Value() - asked.Memory().Value()
	return max(spare, 0) / int64(len(p.Spec.Containers)+len(p.Spec.InitContainers))
}
