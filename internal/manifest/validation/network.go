package validation

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// ValidateNetwork checks the pod's network and its ports of the host.
func ValidateNetwork(p *corev1.Pod, meta, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	mode, annotated := p.Annotations[podutil.AnnotationNetwork]
	fieldPath := meta.Child("annotations").Key(podutil.AnnotationNetwork)
	if annotated {
		errs = append(errs, oneOf(mode, fieldPath, pod.NetworkModes...)...)
	}
	if annotated && p.Spec.HostNetwork && mode != string(pod.NetworkHost) {
		errs = append(errs, field.Invalid(fieldPath, mode, "must be host or unset when `hostNetwork` is true"))
	}
	for _, name := range []string{podutil.AnnotationHostLoopback, podutil.AnnotationClusterServices, podutil.AnnotationNetSysctls, podutil.AnnotationFreeHostPorts} {
		if value, ok := p.Annotations[name]; ok {
			errs = append(errs, oneOf(value, meta.Child("annotations").Key(name), "true", "false")...)
		}
	}
	errs = append(errs, validateNames(p, meta.Child("annotations"))...)
	if mode == string(pod.NetworkNone) {
		podutil.VisitPorts(&p.Spec, spec, func(_ *corev1.Container, p *corev1.ContainerPort, _ bool, fieldPath *field.Path) {
			if p.HostPort != 0 {
				errs = append(errs, field.Forbidden(fieldPath.Child("hostPort"), fmt.Sprintf("cannot be used with the network %s", pod.NetworkNone)))
			}
		})
	}
	if sc := p.Spec.SecurityContext; sc != nil && podutil.IsHostNetwork(p) {
		for i, s := range sc.Sysctls {
			if strings.HasPrefix(sysctl.NormalizeName(s.Name), "net.") {
				errs = append(errs, field.Invalid(spec.Child("securityContext", "sysctls").Index(i).Child("name"), s.Name, "may not be specified when 'hostNetwork' is set to true"))
			}
		}
	}
	return append(errs, validateHostPorts(&p.Spec, podutil.IsHostNetwork(p), spec)...)
}

// validateNames checks the annotations for the names of the host and for name servers.
func validateNames(p *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if value, ok := p.Annotations[podutil.AnnotationHostNames]; ok {
		fieldPath := path.Key(podutil.AnnotationHostNames)
		if _, err := podutil.ParseHostNames(value); err != nil {
			errs = append(errs, field.Invalid(fieldPath, value, err.Error()))
		}
		if p.Annotations[podutil.AnnotationHostLoopback] != "true" && !podutil.IsHostNetwork(p) {
			errs = append(errs, field.Forbidden(fieldPath, fmt.Sprintf("requires %s: \"true\"", podutil.AnnotationHostLoopback)))
		}
	}
	if value, ok := p.Annotations[podutil.AnnotationDNSServers]; ok {
		fieldPath := path.Key(podutil.AnnotationDNSServers)
		if _, err := podutil.ParseDNSServers(value); err != nil {
			errs = append(errs, field.Invalid(fieldPath, value, err.Error()))
		}
		if podutil.IsHostNetwork(p) || !slices.Contains([]corev1.DNSPolicy{"", corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet}, p.Spec.DNSPolicy) {
			errs = append(errs, field.Forbidden(fieldPath, "requires a network of the pod's own and the dnsPolicy ClusterFirst: podrun's resolver queries them; otherwise use dnsConfig"))
		}
	}
	return errs
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		fieldPath := path.Index(i)
		switch msgs := validation.IsValidPortName(p.Name); {
		case p.Name == "":
		case len(msgs) > 0:
			errs = append(errs, checkRule(p.Name, fieldPath.Child("name"), validation.IsValidPortName)...)
		case names.Has(p.Name):
			errs = append(errs, field.Duplicate(fieldPath.Child("name"), p.Name))
		default:
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(fieldPath.Child("containerPort"), ""))
		} else {
			errs = append(errs, validatePort(p.ContainerPort, fieldPath.Child("containerPort"))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, validatePort(p.HostPort, fieldPath.Child("hostPort"))...)
			if p.Protocol == corev1.ProtocolSCTP {
				errs = append(errs, field.Forbidden(fieldPath.Child("hostPort"), "supports TCP and UDP only"))
			}
		}
		if p.HostIP != "" {
			if _, err := netip.ParseAddr(p.HostIP); err != nil {
				errs = append(errs, field.Invalid(fieldPath.Child("hostIP"), p.HostIP, badAddress))
			}
		}
		errs = append(errs, oneOf(p.Protocol, fieldPath.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	}
	return errs
}

// validateHostPorts checks the host ports of the pod (API server: checkHostPortConflicts,
// validateHostNetwork). In addition, a port on all addresses excludes the same number on any other address.
func validateHostPorts(s *corev1.PodSpec, hostNetwork bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type taken struct {
		pod.Port
		concurrent bool
		at         *field.Path
	}
	var before []taken
	podutil.VisitPorts(s, path, func(c *corev1.Container, p *corev1.ContainerPort, concurrent bool, fieldPath *field.Path) {
		if hostNetwork && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(fieldPath.Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			return
		}
		this := podutil.PlanPort(c, p)
		for _, b := range before {
			// A container that has ended may leave its port to a later one.
			if same := b.HostIP == this.HostIP && b.Number == this.Number; this.Clashes(b.Port) && (concurrent && b.concurrent || !same) {
				errs = append(errs, field.Duplicate(fieldPath.Child("hostPort"), fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)))
				break
			}
		}
		before = append(before, taken{this, concurrent, fieldPath})
	})
	return errs
}
