package validation

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateEndpoints checks an Endpoints object (ValidateEndpoints in pkg/apis/core/validation).
func validateEndpoints(o *corev1.Endpoints) field.ErrorList {
	errs := validateObjectMeta(&o.ObjectMeta)
	for i, s := range o.Subsets {
		fieldPath := field.NewPath("subsets").Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(fieldPath, "must specify `addresses` or `notReadyAddresses`"))
		}
		for name, list := range map[string][]corev1.EndpointAddress{"addresses": s.Addresses, "notReadyAddresses": s.NotReadyAddresses} {
			for j, a := range list {
				itemPath := fieldPath.Child(name).Index(j)
				errs = append(errs, validateEndpointAddress(a.IP, itemPath.Child("ip"))...)
				errs = append(errs, checkOptional(a.Hostname, itemPath.Child("hostname"), validation.IsDNS1123Label)...)
			}
		}
		for j, p := range s.Ports {
			itemPath := fieldPath.Child("ports").Index(j)
			if p.Name == "" && len(s.Ports) > 1 {
				errs = append(errs, field.Required(itemPath.Child("name"), ""))
			}
			errs = append(errs, validateEndpointPort(p.Name, p.Port, p.Protocol, itemPath)...)
		}
	}
	return errs
}

// validateEndpointSlice checks an EndpointSlice (ValidateEndpointSlice in pkg/apis/discovery/validation). The
// label and the ports are required by podrun: a slice without them has no meaning here.
func validateEndpointSlice(o *discoveryv1.EndpointSlice) field.ErrorList {
	errs := validateObjectMeta(&o.ObjectMeta)
	errs = append(errs, checkRequired(o.Labels[discoveryv1.LabelServiceName], field.NewPath("metadata", "labels").Key(discoveryv1.LabelServiceName), validation.IsDNS1123Label)...)
	errs = append(errs, oneOf(o.AddressType, field.NewPath("addressType"), discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)...)
	for i, e := range o.Endpoints {
		fieldPath := field.NewPath("endpoints").Index(i)
		if len(e.Addresses) == 0 {
			errs = append(errs, field.Required(fieldPath.Child("addresses"), "must contain at least 1 address"))
		}
		for j, a := range e.Addresses {
			itemPath := fieldPath.Child("addresses").Index(j)
			bad := validateEndpointAddress(a, itemPath)
			if ip, err := netip.ParseAddr(a); err == nil && len(bad) == 0 && ip.Is4() != (o.AddressType == discoveryv1.AddressTypeIPv4) {
				bad = append(bad, field.Invalid(itemPath, a, "must be an address of the type "+string(o.AddressType)))
			}
			errs = append(errs, bad...)
		}
		errs = append(errs, checkOptional(ptr.Deref(e.Hostname, ""), fieldPath.Child("hostname"), validation.IsDNS1123Label)...)
	}
	names := map[string]bool{}
	for i, p := range o.Ports {
		fieldPath, name := field.NewPath("ports").Index(i), ptr.Deref(p.Name, "")
		if names[name] {
			errs = append(errs, field.Duplicate(fieldPath.Child("name"), name))
		}
		names[name] = true
		if p.Port == nil {
			errs = append(errs, field.Required(fieldPath.Child("port"), ""))
			continue
		}
		errs = append(errs, validateEndpointPort(name, *p.Port, ptr.Deref(p.Protocol, ""), fieldPath)...)
	}
	return errs
}

func validateEndpointPort(name string, port int32, protocol corev1.Protocol, fieldPath *field.Path) field.ErrorList {
	errs := checkOptional(name, fieldPath.Child("name"), validation.IsDNS1123Label)
	errs = append(errs, validatePort(port, fieldPath.Child("port"))...)
	return append(errs, oneOf(protocol, fieldPath.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
}

// validateEndpointAddress refuses addresses that would lead back to the client's own host or link, as
// ValidateNonSpecialIP of pkg/apis/core/validation does.
func validateEndpointAddress(text string, fieldPath *field.Path) field.ErrorList {
	if errs := validateAddress(text, fieldPath); len(errs) > 0 {
		return errs
	}
	reason := ""
	switch a, _ := netip.ParseAddr(text); {
	case a.IsUnspecified():
		reason = "may not be unspecified (" + text + ")"
	case a.IsLoopback():
		reason = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
	case a.IsLinkLocalUnicast():
		reason = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
	case a.IsMulticast():
		reason = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(fieldPath, text, reason)}
}
