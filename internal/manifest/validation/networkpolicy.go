package validation

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateNetworkPolicy checks a NetworkPolicy with its defaults (ValidateNetworkPolicy in
// pkg/apis/networking/validation of Kubernetes).
func validateNetworkPolicy(n *networkingv1.NetworkPolicy) field.ErrorList {
	errs, spec := validateObjectMeta(&n.ObjectMeta), field.NewPath("spec")
	errs = append(errs, validateLabelSelector(&n.Spec.PodSelector, spec.Child("podSelector"))...)
	for i, rule := range n.Spec.Ingress {
		fieldPath := spec.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, fieldPath.Child("ports"))...)
		errs = append(errs, validatePolicyPeers(rule.From, fieldPath.Child("from"))...)
	}
	for i, rule := range n.Spec.Egress {
		fieldPath := spec.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, fieldPath.Child("ports"))...)
		errs = append(errs, validatePolicyPeers(rule.To, fieldPath.Child("to"))...)
	}
	types := spec.Child("policyTypes")
	if len(n.Spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(types, n.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range n.Spec.PolicyTypes {
		errs = append(errs, oneOf(t, types.Index(i), networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress)...)
	}
	return errs
}

func validateLabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
}

func validatePolicyPorts(ports []networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ports {
		p, fieldPath := &ports[i], path.Index(i)
		errs = append(errs, optionalOneOf(p.Protocol, fieldPath.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		end := fieldPath.Child("endPort")
		switch {
		case p.Port == nil && p.EndPort != nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		case p.Port == nil:
		case p.Port.Type == intstr.String && p.EndPort != nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
			fallthrough
		case p.EndPort == nil:
			errs = append(errs, validatePortOrName(*p.Port, fieldPath.Child("port"))...)
		default:
			errs = append(errs, validatePort(p.Port.IntVal, fieldPath.Child("port"))...)
			if *p.EndPort < p.Port.IntVal {
				errs = append(errs, field.Invalid(end, p.Port.IntVal, "must be greater than or equal to `port`"))
			}
			errs = append(errs, validatePort(*p.EndPort, end)...)
		}
	}
	return errs
}

func validatePolicyPeers(peers []networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range peers {
		p, fieldPath := &peers[i], path.Index(i)
		errs = append(errs, validateLabelSelector(p.PodSelector, fieldPath.Child("podSelector"))...)
		errs = append(errs, validateLabelSelector(p.NamespaceSelector, fieldPath.Child("namespaceSelector"))...)
		pods := p.PodSelector != nil || p.NamespaceSelector != nil
		if p.IPBlock != nil {
			errs = append(errs, validateIPBlock(p.IPBlock, fieldPath.Child("ipBlock"))...)
		}
		switch {
		case !pods && p.IPBlock == nil:
			errs = append(errs, field.Required(fieldPath, "must specify a peer"))
		case pods && p.IPBlock != nil:
			errs = append(errs, field.Forbidden(fieldPath, "may not specify both ipBlock and another peer"))
		}
	}
	return errs
}

func validateIPBlock(b *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	fieldPath := path.Child("cidr")
	if b.CIDR == "" {
		return field.ErrorList{field.Required(fieldPath, "")}
	}
	errs := validateCIDR(b.CIDR, fieldPath)
	if len(errs) > 0 {
		return errs
	}
	whole := netip.MustParsePrefix(b.CIDR)
	for i, text := range b.Except {
		fieldPath := path.Child("except").Index(i)
		bad := validateCIDR(text, fieldPath)
		errs = append(errs, bad...)
		if len(bad) > 0 {
			continue
		}
		if part := netip.MustParsePrefix(text); !whole.Contains(part.Addr()) || whole.Bits() >= part.Bits() {
			errs = append(errs, field.Invalid(fieldPath, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// validateCIDR checks a prefix with the strict rules (feature gate StrictIPCIDRValidation): an older form
// such as 010.0.0.0/8 has two meanings. netip parses what passes.
func validateCIDR(text string, path *field.Path) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, text, true, nil)
}
