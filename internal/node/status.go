package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ownConditions are the pod conditions that a node sets (kubelet: pkg/kubelet/types/pod_status.go). The scheduler and
// controllers set the other conditions.
var ownConditions = []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady}

// mergeStatus returns the status of the API server's pod, changed by what this host reports (local). A final status
// stays. addresses are the node's.
func mergeStatus(p *corev1.Pod, local *corev1.PodStatus, addresses []string) *corev1.PodStatus {
	st := p.Status.DeepCopy()
	if hasEnded(st) && !hasEnded(local) {
		return st
	}
	local = local.DeepCopy()
	st.ObservedGeneration = p.Generation
	if !hasEnded(st) { // (kubelet: pkg/kubelet/kubelet_pods.go, generateAPIPodStatus)
		st.Phase, st.Reason, st.Message = local.Phase, local.Reason, local.Message
	}
	st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses = local.InitContainerStatuses, local.ContainerStatuses, local.EphemeralContainerStatuses
	st.AllocatedResources, st.Resources = local.AllocatedResources, local.Resources
	if local.StartTime != nil {
		st.StartTime = local.StartTime
	}
	st.HostIP, st.HostIPs = "", nil
	for _, ip := range addresses {
		st.HostIPs = append(st.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(addresses) > 0 {
		st.HostIP = addresses[0]
	}
	if local.PodIP != "" {
		st.PodIP, st.PodIPs = local.PodIP, local.PodIPs
	}
	if p.Spec.HostNetwork && len(addresses) > 0 && !hasEnded(local) {
		st.PodIP, st.PodIPs = addresses[0], nil
		for _, ip := range addresses {
			st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: ip})
		}
	}
	st.Conditions = mergeConditions(p, local.Conditions)
	return st
}

// mergeConditions returns the conditions of a pod: ownConditions as this host reports them, and the others as the API
// server has them.
func mergeConditions(p *corev1.Pod, local []corev1.PodCondition) (all []corev1.PodCondition) {
	for _, c := range local {
		if slices.Contains(ownConditions, c.Type) {
			c.ObservedGeneration = p.Generation
			all = append(all, c)
		}
	}
	for _, c := range p.Status.Conditions {
		if !slices.ContainsFunc(all, func(own corev1.PodCondition) bool { return own.Type == c.Type }) {
			all = append(all, c)
		}
	}
	return all
}

// waitingStatus returns the status of a pod of which no container was created. reason and message say why.
func waitingStatus(p *corev1.Pod, reason, message string) *corev1.PodStatus {
	st := &corev1.PodStatus{Phase: corev1.PodPending, StartTime: p.Status.StartTime}
	statuses := func(containers []corev1.Container) (all []corev1.ContainerStatus) {
		for _, c := range containers {
			all = append(all, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
		}
		return all
	}
	st.InitContainerStatuses, st.ContainerStatuses = statuses(p.Spec.InitContainers), statuses(p.Spec.Containers)
	return st
}
