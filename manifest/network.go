package manifest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// AnnotationNetwork chooses how the pod reaches the world: one of pod.NetworkModes.
const AnnotationNetwork = "podrun.dev/network"

// AnnotationHostLoopback, if "true", lets the pod reach what listens on the host's loopback,
// by the name host.podrun.internal.
const AnnotationHostLoopback = "podrun.dev/host-loopback"

// networkMode is that of a valid Pod.
func networkMode(p *corev1.Pod) pod.NetworkMode {
	switch mode := p.Annotations[AnnotationNetwork]; {
	case p.Spec.HostNetwork:
		return pod.NetworkHost
	case mode == "auto":
		return pod.NetworkAuto
	default:
		return pod.NetworkMode(mode)
	}
}

// inHostNetwork says whether the pod uses the host's network, by field or annotation.
func inHostNetwork(p *corev1.Pod) bool { return networkMode(p) == pod.NetworkHost }

// validateNetwork checks the pod's network and its ports of the host.
func validateNetwork(p *corev1.Pod, meta, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	mode, asked := p.Annotations[AnnotationNetwork]
	at := meta.Child("annotations").Key(AnnotationNetwork)
	if asked {
		errs = append(errs, oneOf(mode, at, pod.NetworkModes...)...)
	}
	if asked && p.Spec.HostNetwork && mode != string(pod.NetworkHost) {
		errs = append(errs, field.Invalid(at, mode, "must be host, or not be there, when `hostNetwork` is true"))
	}
	if loopback, ok := p.Annotations[AnnotationHostLoopback]; ok {
		errs = append(errs, oneOf(loopback, meta.Child("annotations").Key(AnnotationHostLoopback), "true", "false")...)
	}
	if mode == string(pod.NetworkNone) {
		forPorts(&p.Spec, spec, func(_ *corev1.Container, p *corev1.ContainerPort, _ bool, at *field.Path) {
			if p.HostPort != 0 {
				errs = append(errs, field.Forbidden(at.Child("hostPort"), fmt.Sprintf("a pod with the network %s has no ports of the host", pod.NetworkNone)))
			}
		})
	}
	if sc := p.Spec.SecurityContext; sc != nil && inHostNetwork(p) {
		for i, s := range sc.Sysctls {
			if strings.HasPrefix(sysctlName(s.Name), "net.") {
				errs = append(errs, field.Invalid(spec.Child("securityContext", "sysctls").Index(i).Child("name"), s.Name, "may not be specified when 'hostNetwork' is set to true"))
			}
		}
	}
	return append(errs, validateHostPorts(&p.Spec, inHostNetwork(p), spec)...)
}
