package resources

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// QOSClass returns the QoS class of a Pod with its defaults: Guaranteed if every container, init containers
// included, has cpu and memory limits equal to its requests; BestEffort if none has any; else Burstable.
// Pod-level resources, if any, decide alone (pkg/apis/core/v1/helper/qos of Kubernetes).
func QOSClass(p *corev1.Pod) corev1.PodQOSClass {
	if helpers.IsPodLevelResourcesSet(p) {
		return qosClassOf(p.Spec.Resources)
	}
	var class corev1.PodQOSClass
	for c := range podutil.Containers(&p.Spec) {
		class = combineQOS(class, qosClassOf(&c.Resources))
	}
	return class
}

func qosClassOf(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	var class corev1.PodQOSClass
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		switch {
		case !request.Equal(limit):
			class = combineQOS(class, corev1.PodQOSBurstable)
		case request.IsZero():
			class = combineQOS(class, corev1.PodQOSBestEffort)
		default:
			class = combineQOS(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

// combineQOS keeps a class as long as all containers have it.
func combineQOS(all, next corev1.PodQOSClass) corev1.PodQOSClass {
	if all == "" || all == next {
		return next
	}
	return corev1.PodQOSBurstable
}
