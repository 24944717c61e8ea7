package podutil

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/pod"
)

// NetworkMode returns the network mode of a valid Pod.
func NetworkMode(p *corev1.Pod) pod.NetworkMode {
	switch mode := p.Annotations[AnnotationNetwork]; {
	case p.Spec.HostNetwork:
		return pod.NetworkHost
	case mode == "auto":
		return pod.NetworkAuto
	default:
		return pod.NetworkMode(mode)
	}
}

// IsHostNetwork reports whether the pod uses the host's network, by field or annotation.
func IsHostNetwork(p *corev1.Pod) bool { return NetworkMode(p) == pod.NetworkHost }

// Hostname returns the pod's host name, as in the kubelet (GeneratePodHostNameAndDomain in
// pkg/kubelet/kubelet_pods.go).
func Hostname(p *corev1.Pod) string {
	return CutHostname(cmp.Or(ptr.Deref(p.Spec.HostnameOverride, ""), p.Spec.Hostname, p.Name))
}

// CutHostname returns the part of a name that can be a host name.
func CutHostname(name string) string {
	if len(name) > maxHostname {
		name = strings.TrimRight(name[:maxHostname], "-.")
	}
	return name
}

// maxHostname is the kernel's limit, at which a host name is cut.
const maxHostname = 63
