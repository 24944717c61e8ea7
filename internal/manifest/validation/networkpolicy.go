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
		at := spec.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, at.Child("ports"))...)
		errs = append(errs, validatePolicyPeers(rule.From, at.Child("from"))...)
	}
	for i, rule := range n.Spec.Egress {
		at := spec.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, at.Child("ports"))...)
		errs = append(errs, validatePolicyPeers(rule.To, at.Child("to"))...)
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
		p, at := &ports[i], path.Index(i)
		errs = append(errs, optionalOneOf(p.Protocol, at.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		end := at.Child("endPort")
		switch {
		case p.Port == nil && p.EndPort != nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
		case p.Port == nil:
		case p.Port.Type == intstr.String && p.EndPort != nil:
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
			fallthrough
		case p.EndPort == nil:
			errs = append(errs, validatePortOrName(*p.Port, at.Child("port"))...)
		default:
			errs = append(errs, validatePort(p.Port.IntVal, at.Child("port"))...)
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
		p, at := &peers[i], path.Index(i)
		errs = append(errs, validateLabelSelector(p.PodSelector, at.Child("podSelector"))...)
		errs = append(errs, validateLabelSelector(p.NamespaceSelector, at.Child("namespaceSelector"))...)
		pods := p.PodSelector != nil || p.NamespaceSelector != nil
		if p.IPBlock != nil {
			errs = append(errs, validateIPBlock(p.IPBlock, at.Child("ipBlock"))...)
		}
		switch {
		case !pods && p.IPBlock == nil:
			errs = append(errs, field.Required(at, "must specify a peer"))
		case pods && p.IPBlock != nil:
			errs = append(errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		}
	}
	return errs
}

func validateIPBlock(b *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	at := path.Child("cidr")
	if b.CIDR == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateCIDR(b.CIDR, at)
	if len(errs) > 0 {
		return errs
	}
	whole := netip.MustParsePrefix(b.CIDR)
	for i, text := range b.Except {
		at := path.Child("except").Index(i)
		bad := validateCIDR(text, at)
		errs = append(errs, bad...)
		if len(bad) > 0 {
			continue
		}
		if part := netip.MustParsePrefix(text); !whole.Contains(part.Addr()) || whole.Bits() >= part.Bits() {
			errs = append(errs, field.Invalid(at, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// validateCIDR checks a prefix with the strict rules (feature gate StrictIPCIDRValidation): an older form
// such as 010.0.0.0/8 has two meanings. netip parses what passes.
func validateCIDR(text string, path *field.Path) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, text, true, nil)
}
