package manifest

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxHostname is the kernel's limit of a host name that is cut.
const maxHostname = 63

// hostname names the pod, as the kubelet does (GeneratePodHostNameAndDomain in
// pkg/kubelet/kubelet_pods.go).
func hostname(p *corev1.Pod) string {
	name := cmp.Or(optional(p.Spec.HostnameOverride), p.Spec.Hostname, p.Name)
	if len(name) > maxHostname {
		name = strings.TrimRight(name[:maxHostname], "-.")
	}
	return name
}

// subdomain is the pod's; a name that overrides has none.
func subdomain(p *corev1.Pod) string {
	if p.Spec.HostnameOverride != nil {
		return ""
	}
	return p.Spec.Subdomain
}

func validateHostname(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Hostname != "" {
		errs = append(errs, named(s.Hostname, path.Child("hostname"), validation.IsDNS1123Label)...)
	}
	o := s.HostnameOverride
	if o == nil {
		return errs
	}
	at := path.Child("hostnameOverride")
	if is(s.SetHostnameAsFQDN) {
		errs = append(errs, field.Forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
	}
	if s.HostNetwork {
		errs = append(errs, field.Forbidden(at, "may not be specified when hostNetwork is true"))
	}
	if len(*o) > maxNodeName {
		errs = append(errs, field.TooLong(at, "", maxNodeName))
	}
	return append(errs, named(*o, at, validation.IsDNS1123Subdomain)...)
}
