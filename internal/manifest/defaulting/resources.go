package defaulting

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// defaultPodResources completes resources at pod level, if there are any besides pids (DefaultPodLevelResources
// in pkg/api/pod of Kubernetes). The containers have their defaults already.
func defaultPodResources(p *corev1.Pod) {
	r := p.Spec.Resources
	if !helpers.IsPodLevelResourcesSet(p) {
		return
	}
	roundUp(r.Limits)
	roundUp(r.Requests)
	// A request is the sum of the containers' requests, else the pod's limit.
	addMissing(&r.Requests, helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{}))
	addMissing(&r.Requests, r.Limits)
	// A limit is the sum of the containers' limits, if each has one, but not below the request.
	limits := helpers.AggregateContainerLimits(p, helpers.PodResourcesOptions{})
	for name, limit := range limits {
		request, requested := r.Requests[name]
		if !requested || !allHaveLimit(p, name) {
			delete(limits, name)
		} else if limit.Cmp(request) < 0 {
			limits[name] = request
		}
	}
	addMissing(&r.Limits, limits)
}

// addMissing adds missing entries to a list, for the resources that a pod can have as a whole.
func addMissing(list *corev1.ResourceList, from corev1.ResourceList) {
	for name, q := range from {
		if _, ok := (*list)[name]; ok || !helpers.IsSupportedPodLevelResource(name) {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q.DeepCopy()
	}
}

func allHaveLimit(p *corev1.Pod, name corev1.ResourceName) bool {
	for c := range podutil.Containers(&p.Spec) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return false
		}
	}
	return true
}

// roundUp rounds quantities up to the API's precision, thousandths.
func roundUp(list corev1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}
