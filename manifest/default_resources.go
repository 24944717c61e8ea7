package manifest

import (
	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

// defaultPodResources completes resources at pod level, where there are any
// (DefaultPodLevelResources in pkg/api/pod of Kubernetes). The containers have
// their defaults already.
func defaultPodResources(p *corev1.Pod) {
	r := p.Spec.Resources
	if r == nil || len(r.Limits)+len(r.Requests) == 0 {
		return
	}
	roundUp(r.Limits)
	roundUp(r.Requests)
	// A request is what the containers ask for together, else the pod's limit.
	fill(&r.Requests, helpers.AggregateContainerRequests(p, helpers.PodResourcesOptions{}))
	fill(&r.Requests, r.Limits)
	// A limit is what the containers have together, if each has one, but not below
	// the request.
	limits := helpers.AggregateContainerLimits(p, helpers.PodResourcesOptions{})
	for name, limit := range limits {
		request, asked := r.Requests[name]
		if !asked || !allLimited(p, name) {
			delete(limits, name)
		} else if limit.Cmp(request) < 0 {
			limits[name] = request
		}
	}
	fill(&r.Limits, limits)
}

// fill adds what is missing in a list, of the resources a pod can have as a whole.
func fill(list *corev1.ResourceList, from corev1.ResourceList) {
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

func allLimited(p *corev1.Pod, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[name]; !ok {
				return false
			}
		}
	}
	return true
}
