package validation

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// validateService checks a Service with its defaults (ValidateService in
// pkg/apis/core/validation of Kubernetes).
func validateService(s *corev1.Service) field.ErrorList {
	errs, spec := apivalidation.ValidateObjectMeta(&s.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata")), field.NewPath("spec")
	if value, ok := s.Annotations[podutil.AnnotationNames]; ok {
		if _, err := podutil.ParseNames(value); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(podutil.AnnotationNames), value, err.Error()))
		}
	}
	headless, external := s.Spec.ClusterIP == corev1.ClusterIPNone, s.Spec.Type == corev1.ServiceTypeExternalName
	errs = append(errs, oneOf(s.Spec.Type, spec.Child("type"), corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	if len(s.Spec.Ports) == 0 && !headless && !external {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	switch {
	case external:
		fieldPath := spec.Child("externalName")
		errs = append(errs, checkRequired(trimDot(s.Spec.ExternalName), fieldPath, validation.IsDNS1123Subdomain)...)
		if s.Spec.ClusterIP != "" {
			errs = append(errs, field.Forbidden(spec.Child("clusterIP"), "may not be set when `type` is 'ExternalName'"))
		}
	case headless && (s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer):
		errs = append(errs, field.Invalid(spec.Child("clusterIP"), s.Spec.ClusterIP, "may not be set to 'None' for "+string(s.Spec.Type)+" services"))
	}
	errs = append(errs, validateClusterIPs(&s.Spec, spec)...)
	errs = append(errs, validateFamilies(&s.Spec, spec)...)
	errs = append(errs, metavalidation.ValidateLabels(s.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, oneOf(s.Spec.SessionAffinity, spec.Child("sessionAffinity"), corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	if !ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
		errs = append(errs, field.Invalid(spec.Child("allocateLoadBalancerNodePorts"), false, "podrun implements LoadBalancer by node ports: must be true, or use type ClusterIP"))
	}
	errs = append(errs, validateAffinity(&s.Spec, spec.Child("sessionAffinityConfig"))...)
	return append(errs, validateServicePorts(&s.Spec, spec.Child("ports"))...)
}

func trimDot(name string) string {
	if n := len(name); n > 1 && name[n-1] == '.' {
		return name[:n-1]
	}
	return name
}

func validateClusterIPs(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	fieldPath := path.Child("clusterIPs")
	switch {
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(fieldPath, s.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(fieldPath, s.ClusterIPs, "first value must match `clusterIP`"))
	}
	families := map[bool]bool{}
	for i, ip := range s.ClusterIPs {
		if ip == corev1.ClusterIPNone && len(s.ClusterIPs) == 1 {
			continue
		}
		if bad := validateAddress(ip, fieldPath.Index(i)); bad != nil {
			errs = append(errs, bad...)
			continue
		}
		is4 := netip.MustParseAddr(ip).Is4()
		if families[is4] {
			errs = append(errs, field.Invalid(fieldPath, s.ClusterIPs, "may specify no more than one IP for each IP family"))
		}
		families[is4] = true
	}
	return errs
}

// validateFamilies checks the IP families (validateIPFamilies and validateServiceClusterIPsRelatedFields in
// pkg/apis/core/validation, and pkg/registry/core/service/storage/alloc.go of Kubernetes).
func validateFamilies(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	families, policy := path.Child("ipFamilies"), path.Child("ipFamilyPolicy")
	if s.Type == corev1.ServiceTypeExternalName {
		if len(s.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(families, "may not be set for ExternalName services"))
		}
		if s.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(policy, "may not be set for ExternalName services"))
		}
		return errs
	}
	if s.IPFamilyPolicy != nil {
		errs = append(errs, oneOf(*s.IPFamilyPolicy, policy, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)...)
	}
	had := map[corev1.IPFamily]bool{}
	for i, f := range s.IPFamilies {
		errs = append(errs, oneOf(f, families.Index(i), corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		if had[f] {
			errs = append(errs, field.Duplicate(families.Index(i), f))
		}
		had[f] = true
	}
	for i, ip := range s.ClusterIPs {
		a, err := netip.ParseAddr(ip)
		if err == nil && i < len(s.IPFamilies) && a.Is4() != (s.IPFamilies[i] == corev1.IPv4Protocol) {
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", s.IPFamilies[i], i)))
		}
	}
	if ptr.Deref(s.IPFamilyPolicy, "") == corev1.IPFamilyPolicySingleStack {
		for list, n := range map[string]int{"ipFamilies": len(s.IPFamilies), "clusterIPs": len(s.ClusterIPs)} {
			if n > 1 {
				errs = append(errs, field.Invalid(policy, *s.IPFamilyPolicy, "must be RequireDualStack or PreferDualStack when multiple `"+list+"` are specified"))
			}
		}
	}
	return errs
}

// maxAffinitySeconds is a day.
const maxAffinitySeconds = 86400

func validateAffinity(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	c := s.SessionAffinityConfig
	if s.SessionAffinity == corev1.ServiceAffinityNone && c != nil {
		return field.ErrorList{field.Forbidden(path, "must not be set when session affinity is None")}
	}
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return nil
	}
	if t := *c.ClientIP.TimeoutSeconds; t <= 0 || t > maxAffinitySeconds {
		return field.ErrorList{field.Invalid(path.Child("clientIP", "timeoutSeconds"), t, validation.InclusiveRangeError(1, maxAffinitySeconds))}
	}
	return nil
}

func validateServicePorts(s *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type number struct {
		protocol corev1.Protocol
		port     int32
	}
	names, ports, nodes := map[string]bool{}, map[number]bool{}, map[number]bool{}
	for i, p := range s.Ports {
		fieldPath := path.Index(i)
		switch {
		case p.Name == "" && len(s.Ports) > 1:
			errs = append(errs, field.Required(fieldPath.Child("name"), ""))
		case p.Name != "":
			errs = append(errs, checkRule(p.Name, fieldPath.Child("name"), validation.IsDNS1123Label)...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(fieldPath.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, validatePort(p.Port, fieldPath.Child("port"))...)
		errs = append(errs, oneOf(p.Protocol, fieldPath.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		errs = append(errs, validatePortOrName(p.TargetPort, fieldPath.Child("targetPort"))...)
		if key := (number{p.Protocol, p.Port}); ports[key] {
			errs = append(errs, field.Duplicate(fieldPath, p.Port))
		} else {
			ports[key] = true
		}
		if p.NodePort == 0 {
			continue
		}
		if pod.ServiceType(s.Type).OpensPorts() && (p.NodePort < pod.FirstNodePort || p.NodePort > pod.LastNodePort) {
			errs = append(errs, field.Invalid(fieldPath.Child("nodePort"), p.NodePort, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", pod.FirstNodePort, pod.LastNodePort)))
		}
		if s.Type == corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(fieldPath.Child("nodePort"), "may not be used when `type` is '"+string(s.Type)+"'"))
		}
		errs = append(errs, validatePort(p.NodePort, fieldPath.Child("nodePort"))...)
		if key := (number{p.Protocol, p.NodePort}); nodes[key] {
			errs = append(errs, field.Duplicate(fieldPath.Child("nodePort"), p.NodePort))
		} else {
			nodes[key] = true
		}
	}
	return errs
}
