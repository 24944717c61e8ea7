package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/eviction"
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
	st.Conditions = mergeConditions(p, local)
	return st
}

// mergeConditions returns the conditions of a pod: ownConditions as this host reports them, and the others as the API
// server has them. The node has seen that the pod is scheduled (kubelet: pkg/kubelet/kubelet_pods.go, generateAPIPodStatus).
// A pod that was evicted because the node is low on a resource was disrupted.
func mergeConditions(p *corev1.Pod, local *corev1.PodStatus) (all []corev1.PodCondition) {
	disrupted := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if local.Reason == eviction.Reason && eviction.IsMessage(local.Message) && !disrupted {
		all = append(all, corev1.PodCondition{
			Type: corev1.DisruptionTarget, ObservedGeneration: p.Generation, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, Message: local.Message, LastTransitionTime: metav1.Now(),
		})
	}
	for _, c := range local.Conditions {
		if slices.Contains(ownConditions, c.Type) {
			c.ObservedGeneration = p.Generation
			all = append(all, c)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			c.ObservedGeneration = p.Generation
		}
		if !slices.ContainsFunc(all, func(other corev1.PodCondition) bool { return other.Type == c.Type }) {
			all = append(all, c)
		}
	}
	return all
}

// endedStatus returns the status of a pod that is to be deleted and of which nothing runs: a final one (kubelet:
// pkg/kubelet/status/status_manager.go, TerminatePod). Containers whose end is not known have failed, unless the pod
// was not initialized.
func endedStatus(st *corev1.PodStatus) *corev1.PodStatus {
	st = st.DeepCopy()
	lost := func(all []corev1.ContainerStatus, mayWait bool) {
		for i := range all {
			if s := &all[i].State; s.Running != nil || s.Terminated == nil && !mayWait {
				*s = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated", ExitCode: 137}}
			}
			all[i].Ready, all[i].Started = false, new(false)
		}
	}
	initialized := slices.ContainsFunc(st.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Waiting == nil || c.RestartCount > 0 })
	lost(st.InitContainerStatuses, true)
	lost(st.ContainerStatuses, !initialized)
	lost(st.EphemeralContainerStatuses, true)
	if !hasEnded(st) {
		st.Phase = corev1.PodFailed
	}
	return st
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
