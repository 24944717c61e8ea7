package podmetrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
)

// podState are kube-state-metrics' families of pods (internal/store/pod.go).
func podState() []family[*corev1.Pod] {
	type p = *corev1.Pod
	all := []family[p]{
		{"kube_pod_info", metric.Gauge, "Information about pod.", podInfo},
		{"kube_pod_created", metric.Gauge, "Unix creation timestamp", func(p p) []*metric.Metric { return timestamp(&p.CreationTimestamp) }},
		{"kube_pod_start_time", metric.Gauge, "Start time in unix timestamp for a pod.", func(p p) []*metric.Metric { return timestamp(p.Status.StartTime) }},
		{"kube_pod_status_phase", metric.Gauge, "The pods current phase.", func(p p) (all []*metric.Metric) {
			for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown, corev1.PodRunning} {
				all = append(all, one(oneIf(p.Status.Phase == phase), "phase", string(phase))...)
			}
			return all
		}},
		{"kube_pod_status_ready", metric.Gauge, "Describes whether the pod is ready to serve requests.", func(p p) (all []*metric.Metric) {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady {
					all = append(all, conditionStates(c.Status)...)
				}
			}
			return all
		}},
	}
	all = append(all, containerFamilies("kube_pod_container_", "container", func(p p) ([]corev1.Container, []corev1.ContainerStatus) {
		return p.Spec.Containers, p.Status.ContainerStatuses
	})...)
	return append(all, containerFamilies("kube_pod_init_container_", "init container", func(p p) ([]corev1.Container, []corev1.ContainerStatus) {
		return p.Spec.InitContainers, p.Status.InitContainerStatuses
	})...)
}

// containerFamilies are the metric families of one list of a pod's containers; of returns containers and statuses.
func containerFamilies(prefix, what string, of func(*corev1.Pod) ([]corev1.Container, []corev1.ContainerStatus)) []family[*corev1.Pod] {
	var all []family[*corev1.Pod]
	for _, f := range containerState(prefix, what) {
		all = append(all, family[*corev1.Pod]{f.name, f.kind, f.help, func(p *corev1.Pod) (all []*metric.Metric) {
			_, list := of(p)
			for i := range list {
				for _, m := range f.of(&list[i]) {
					m.LabelKeys, m.LabelValues = append([]string{"container"}, m.LabelKeys...), append([]string{list[i].Name}, m.LabelValues...)
					all = append(all, m)
				}
			}
			return all
		}})
	}
	resources := func(p *corev1.Pod, quantities func(corev1.ResourceRequirements) corev1.ResourceList) (all []*metric.Metric) {
		list, _ := of(p)
		for _, c := range list {
			for _, name := range slices.Sorted(maps.Keys(quantities(c.Resources))) {
				quantity := quantities(c.Resources)[name]
				all = append(all, one(quantity.AsApproximateFloat64(), "container", c.Name, "node", p.Spec.NodeName, "resource", labelValue(name), "unit", unit(name))...)
			}
		}
		return all
	}
	return append(all,
		family[*corev1.Pod]{prefix + "resource_requests", metric.Gauge, "The number of requested request resource by the " + what + ".", func(p *corev1.Pod) []*metric.Metric {
			return resources(p, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
		}},
		family[*corev1.Pod]{prefix + "resource_limits", metric.Gauge, "The number of requested limit resource by the " + what + ".", func(p *corev1.Pod) []*metric.Metric {
			return resources(p, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
		}},
	)
}

// labelValue returns the name of a resource as kube-state-metrics writes it: ephemeral_storage.
func labelValue(name corev1.ResourceName) string {
	return strings.NewReplacer("-", "_", ".", "_", "/", "_").Replace(string(name))
}

// unit returns kube-state-metrics' unit of a resource.
func unit(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourceCPU:
		return "core"
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return "byte"
	}
	return "integer"
}

// conditionStates returns one series for each status that a condition may have.
func conditionStates(status corev1.ConditionStatus) (all []*metric.Metric) {
	for _, s := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		all = append(all, one(oneIf(s == status), "condition", strings.ToLower(string(s)))...)
	}
	return all
}

func podInfo(p *corev1.Pod) []*metric.Metric {
	var owner metav1.OwnerReference
	if o := metav1.GetControllerOf(p); o != nil {
		owner = *o
	}
	return one(1, "host_ip", p.Status.HostIP, "pod_ip", p.Status.PodIP, "node", p.Spec.NodeName, "created_by_kind", owner.Kind, "created_by_name", owner.Name,
		"priority_class", p.Spec.PriorityClassName, "host_network", strconv.FormatBool(p.Spec.HostNetwork))
}

// containerState are the families of a container's state; what is "container" or "init container".
func containerState(prefix, what string) []family[*corev1.ContainerStatus] {
	type s = *corev1.ContainerStatus
	ended := func(t *corev1.ContainerStateTerminated) []*metric.Metric {
		if t == nil {
			return nil
		}
		return one(1, "reason", t.Reason)
	}
	return []family[s]{
		{prefix + "info", metric.Gauge, "Information about the " + what + " in a pod.", func(s s) []*metric.Metric {
			return one(1, "image", s.Image, "image_id", s.ImageID, "container_id", s.ContainerID)
		}},
		{prefix + "status_ready", metric.Gauge, "Describes whether the " + what + "s readiness check succeeded.", func(s s) []*metric.Metric { return one(oneIf(s.Ready)) }},
		{prefix + "status_restarts_total", metric.Counter, "The number of restarts for the " + what + ".", func(s s) []*metric.Metric { return number(&s.RestartCount) }},
		{prefix + "status_running", metric.Gauge, "Describes whether the " + what + " is currently in running state.", func(s s) []*metric.Metric { return one(oneIf(s.State.Running != nil)) }},
		{prefix + "status_waiting", metric.Gauge, "Describes whether the " + what + " is currently in waiting state.", func(s s) []*metric.Metric { return one(oneIf(s.State.Waiting != nil)) }},
		{prefix + "status_waiting_reason", metric.Gauge, "Describes the reason the " + what + " is currently in waiting state.", func(s s) []*metric.Metric {
			if s.State.Waiting == nil {
				return nil
			}
			return one(1, "reason", s.State.Waiting.Reason)
		}},
		{prefix + "status_terminated", metric.Gauge, "Describes whether the " + what + " is currently in terminated state.", func(s s) []*metric.Metric { return one(oneIf(s.State.Terminated != nil)) }},
		{prefix + "status_terminated_reason", metric.Gauge, "Describes the reason the " + what + " is currently in terminated state.", func(s s) []*metric.Metric { return ended(s.State.Terminated) }},
		{prefix + "status_last_terminated_reason", metric.Gauge, "Describes the last reason the " + what + " was in terminated state.", func(s s) []*metric.Metric {
			return ended(s.LastTerminationState.Terminated)
		}},
		{prefix + "status_last_terminated_exitcode", metric.Gauge, "Describes the exit code for the last " + what + " in terminated state.", func(s s) []*metric.Metric {
			if s.LastTerminationState.Terminated == nil {
				return nil
			}
			return number(&s.LastTerminationState.Terminated.ExitCode)
		}},
	}
}
