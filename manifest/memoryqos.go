package manifest

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/pod"
)

// AnnotationMemoryQoS, if "true", turns on what the kubelet does with its feature
// MemoryQoS, TieredReservation and the usual throttling factor: requested memory is
// protected (memory.min of a Guaranteed pod, memory.low of a Burstable one), and a
// container that comes near its limit is slowed down (memory.high). Without it nothing
// of that is set, as by a kubelet with its defaults.
const AnnotationMemoryQoS = "podrun.dev/memory-qos"

const (
	memoryPage = 4096 // kubelet: defaultPageSize
	// What of the memory between request and limit may be used before a container is
	// slowed down, in tenths (kubelet: DefaultMemoryThrottlingFactor, 0.9).
	throttleAt = 9
)

// memoryQoS adds to the resources of a plan what the annotation asks for
// (kubelet: generateLinuxContainerResources, ResourceConfigForPod and
// ApplyPodLevelMemoryHigh). nodeMemory stands for the limit of what has none.
func memoryQoS(p *corev1.Pod, plan *pod.Plan, nodeMemory int64) {
	if p.Annotations[AnnotationMemoryQoS] != "true" {
		return
	}
	guaranteed := plan.QOSClass == string(corev1.PodQOSGuaranteed)
	protect := func(r *pod.Resources) {
		if guaranteed {
			r.MemoryMin = r.MemoryRequest
		} else {
			r.MemoryLow = r.MemoryRequest
		}
	}
	whole := helpers.IsPodLevelResourcesSet(p) && !p.Spec.Resources.Limits.Memory().IsZero()
	protect(&plan.Resources)
	if whole {
		plan.Resources.MemoryHigh = memoryHigh(plan.Resources, 0)
	}
	for _, l := range []struct {
		spec []corev1.Container
		plan []pod.Container
	}{{p.Spec.InitContainers, plan.InitContainers}, {p.Spec.Containers, plan.Containers}} {
		for i := range l.plan {
			r := &l.plan[i].Resources
			protect(r)
			// Where the pod has a limit of its own, its memory.high speaks for a container
			// that has none.
			if !whole || !l.spec[i].Resources.Limits.Memory().IsZero() {
				r.MemoryHigh = memoryHigh(*r, nodeMemory)
			}
		}
	}
}

// memoryHigh is where what has these resources is slowed down; 0: nowhere.
func memoryHigh(r pod.Resources, nodeMemory int64) int64 {
	limit := r.MemoryLimit
	if limit == 0 {
		limit = nodeMemory
	}
	if limit <= r.MemoryRequest {
		return 0
	}
	between := limit - r.MemoryRequest
	high := (r.MemoryRequest + between/10*throttleAt + between%10*throttleAt/10) / memoryPage * memoryPage
	if high <= r.MemoryRequest {
		return 0
	}
	return high
}
