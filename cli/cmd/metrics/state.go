package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/metrics"
)

// The metrics of this file are those of kube-state-metrics (docs/metrics/workload/pod-metrics.md).

func info(name, help string) metrics.Desc {
	return metrics.Desc{Name: name, Help: help, Type: metrics.Gauge}
}

var (
	podInfo       = info("kube_pod_info", "Information about pod.")
	podOwner      = info("kube_pod_owner", "Information about the Pod's owner.")
	podCreated    = info("kube_pod_created", "Unix creation timestamp.")
	podStarted    = info("kube_pod_start_time", "Start time in unix timestamp for a pod.")
	podDeleted    = info("kube_pod_deletion_timestamp", "Unix deletion timestamp.")
	podPhase      = info("kube_pod_status_phase", "The pods current phase.")
	podReady      = info("kube_pod_status_ready", "Describes whether the pod is ready to serve requests.")
	podReason     = info("kube_pod_status_reason", "The pod status reasons.")
	restartPolicy = info("kube_pod_restart_policy", "Describes the restart policy in use by this pod.")
)

// addState adds the state of a pod and its containers.
func addState(set *metrics.Set, p *corev1.Pod) {
	of := []string{"namespace", p.Namespace, "pod", p.Name, "uid", string(p.UID)}
	with := func(labels ...string) []string { return slices.Concat(of, labels) }
	owner := metav1.GetControllerOf(p)
	kind, name := "", ""
	if owner != nil {
		kind, name = owner.Kind, owner.Name
		set.Add(podOwner, 1, with("owner_kind", kind, "owner_name", name, "owner_is_controller", "true")...)
	}
	set.Add(podInfo, 1, with("host_ip", p.Status.HostIP, "pod_ip", p.Status.PodIP, "node", p.Spec.NodeName, "created_by_kind", kind, "created_by_name", name,
		"priority_class", p.Spec.PriorityClassName, "host_network", strconv.FormatBool(p.Spec.HostNetwork))...)
	set.Add(restartPolicy, 1, with("type", string(p.Spec.RestartPolicy))...)
	addTime(set, podCreated, &p.CreationTimestamp, of)
	addTime(set, podStarted, p.Status.StartTime, of)
	addTime(set, podDeleted, p.DeletionTimestamp, of)
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
		set.Add(podPhase, is(p.Status.Phase == phase), with("phase", string(phase))...)
	}
	if p.Status.Reason != "" {
		set.Add(podReason, 1, with("reason", p.Status.Reason)...)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			set.Add(podReady, is(c.Status == corev1.ConditionTrue), with("condition", "true")...)
			set.Add(podReady, is(c.Status == corev1.ConditionFalse), with("condition", "false")...)
			set.Add(podReady, is(c.Status == corev1.ConditionUnknown), with("condition", "unknown")...)
		}
	}
	for _, c := range p.Status.InitContainerStatuses {
		addContainer(set, "kube_pod_init_container", &c, of)
	}
	for _, c := range p.Status.ContainerStatuses {
		addContainer(set, "kube_pod_container", &c, of)
	}
	addResources(set, "kube_pod_init_container", p.Spec.InitContainers, of)
	addResources(set, "kube_pod_container", p.Spec.Containers, of)
}

// containerStatuses returns the states of all containers.
func containerStatuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses)
}

// addContainer adds the state of a container. prefix is that of the names of its metrics.
func addContainer(set *metrics.Set, prefix string, c *corev1.ContainerStatus, of []string) {
	with := func(labels ...string) []string { return slices.Concat([]string{"container", c.Name}, of, labels) }
	gauge := func(name, help string, value float64, labels ...string) {
		set.Add(info(prefix+"_"+name, help), value, with(labels...)...)
	}
	gauge("info", "Information about a container in a pod.", 1, "image", c.Image, "image_id", c.ImageID, "container_id", c.ContainerID)
	gauge("status_ready", "Describes whether the containers readiness check succeeded.", is(c.Ready))
	set.Add(metrics.Desc{Name: prefix + "_status_restarts_total", Help: "The number of container restarts per container.", Type: metrics.Counter}, float64(c.RestartCount), with()...)
	gauge("status_running", "Describes whether the container is currently in running state.", is(c.State.Running != nil))
	gauge("status_waiting", "Describes whether the container is currently in waiting state.", is(c.State.Waiting != nil))
	gauge("status_terminated", "Describes whether the container is currently in terminated state.", is(c.State.Terminated != nil))
	if c.State.Running != nil {
		gauge("state_started", "Start time in unix timestamp for a pod container.", unix(c.State.Running.StartedAt))
	}
	if c.State.Waiting != nil {
		gauge("status_waiting_reason", "Describes the reason the container is currently in waiting state.", 1, "reason", c.State.Waiting.Reason)
	}
	if c.State.Terminated != nil {
		gauge("status_terminated_reason", "Describes the reason the container is currently in terminated state.", 1, "reason", c.State.Terminated.Reason)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		gauge("status_last_terminated_reason", "Describes the last reason the container was in terminated state.", 1, "reason", last.Reason)
		gauge("status_last_terminated_exitcode", "Describes the exit code for the last container in terminated state.", float64(last.ExitCode))
	}
}

// addResources adds the requests and limits of containers.
func addResources(set *metrics.Set, prefix string, containers []corev1.Container, of []string) {
	requests := info(prefix+"_resource_requests", "The number of requested request resource by a container.")
	limits := info(prefix+"_resource_limits", "The number of requested limit resource by a container.")
	for _, c := range containers {
		add := func(d metrics.Desc, list corev1.ResourceList) {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				unit, value := amount(name, list[name])
				set.Add(d, value, slices.Concat([]string{"container", c.Name}, of, []string{"resource", labelOf(name), "unit", unit})...)
			}
		}
		add(requests, c.Resources.Requests)
		add(limits, c.Resources.Limits)
	}
}

// amount returns a quantity with its unit (kube-state-metrics: internal/store/pod.go).
func amount(name corev1.ResourceName, q resource.Quantity) (unit string, value float64) {
	switch name {
	case corev1.ResourceCPU:
		return "core", q.AsApproximateFloat64()
	case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return "byte", float64(q.Value())
	}
	return "integer", float64(q.Value())
}

// labelOf returns the name of a resource as a label: nvidia.com/gpu is nvidia_com_gpu.
func labelOf(name corev1.ResourceName) string {
	return strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(string(name))
}

func is(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func unix(t metav1.Time) float64 { return float64(t.Unix()) }

func addTime(set *metrics.Set, d metrics.Desc, t *metav1.Time, labels []string) {
	if t != nil && !t.IsZero() {
		set.Add(d, unix(*t), labels...)
	}
}
