package node

import (
	"fmt"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/podrun/podrun/internal/manifest/validation"
)

// rejection is the reason why the node does not admit a pod, as in the pod's status.
type rejection struct{ reason, message string }

// admit returns why the node does not admit a pod, or nil. others are the pods that the node has admitted. The
// reasons and messages are the kubelet's (pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/sysctl/allowlist.go). As in
// the kubelet, requests of extended resources that the node does not have are ignored.
func admit(p *corev1.Pod, n *corev1.Node, others []*corev1.Pod, unsafe validation.UnsafeSysctls) *rejection {
	if name, ok := p.Labels[corev1.LabelOSStable]; ok && name != runtime.GOOS {
		return &rejection{"PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}
	}
	if p.Spec.OS != nil && string(p.Spec.OS.Name) != runtime.GOOS {
		return &rejection{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"}
	}
	for _, i := range unsafe.Forbidden(p) {
		return &rejection{"SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowlisted", p.Spec.SecurityContext.Sysctls[i].Name)}
	}
	if r := exceedsResources(p, n, others); r != nil {
		return r
	}
	if matches, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !matches {
		return &rejection{"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}
	}
	if portsConflict(p, others) {
		return &rejection{"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}
	}
	noExecute := func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }
	if _, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, noExecute, false); untolerated {
		return &rejection{"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}
	}
	return nil
}

// exceedsResources returns a rejection for the first resource of which the node has not enough left for a pod, or
// nil. Amounts of CPU are in thousandths.
func exceedsResources(p *corev1.Pod, n *corev1.Node, others []*corev1.Pod) *rejection {
	insufficient := func(name corev1.ResourceName, requested, used, capacity int64) *rejection {
		return &rejection{"OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)}
	}
	capacity := amountOf(n.Status.Allocatable, corev1.ResourcePods)
	if used := int64(len(others)); used+1 > capacity {
		return insufficient(corev1.ResourcePods, 1, used, capacity)
	}
	requests := helpers.PodRequests(p, helpers.PodResourcesOptions{})
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if _, has := n.Status.Allocatable[name]; has && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		requested, used := amountOf(requests, name), int64(0)
		for _, o := range others {
			used += amountOf(helpers.PodRequests(o, helpers.PodResourcesOptions{}), name)
		}
		if capacity := amountOf(n.Status.Allocatable, name); requested > 0 && requested > capacity-used {
			return insufficient(name, requested, used, capacity)
		}
	}
	return nil
}

func amountOf(list corev1.ResourceList, name corev1.ResourceName) int64 {
	q := list[name]
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// hostPort is a port that a pod opens in the host's network.
type hostPort struct {
	ip       string // "" for all addresses
	protocol corev1.Protocol
	port     int32
}

func (h hostPort) conflicts(o hostPort) bool {
	return h.port == o.port && h.protocol == o.protocol && (h.ip == o.ip || h.ip == "" || o.ip == "")
}

// portsConflict reports whether a pod needs a host port that another one has.
func portsConflict(p *corev1.Pod, others []*corev1.Pod) bool {
	need := hostPorts(p)
	return len(need) > 0 && slices.ContainsFunc(others, func(o *corev1.Pod) bool {
		return slices.ContainsFunc(hostPorts(o), func(has hostPort) bool { return slices.ContainsFunc(need, has.conflicts) })
	})
}

// hostPorts returns the host ports of a pod (scheduler: pkg/scheduler/util, GetHostPorts).
func hostPorts(p *corev1.Pod) (all []hostPort) {
	add := func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				h := hostPort{port.HostIP, port.Protocol, port.HostPort}
				if h.ip == "0.0.0.0" {
					h.ip = ""
				}
				if h.protocol == "" {
					h.protocol = corev1.ProtocolTCP
				}
				all = append(all, h)
			}
		}
	}
	for i := range p.Spec.InitContainers {
		if policy := p.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&p.Spec.InitContainers[i])
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	return all
}
