package validation

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func validateHostname(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := checkOptional(s.Hostname, path.Child("hostname"), validation.IsDNS1123Label)
	o := s.HostnameOverride
	if o == nil {
		return errs
	}
	fieldPath := path.Child("hostnameOverride")
	if ptr.Deref(s.SetHostnameAsFQDN, false) {
		errs = append(errs, field.Forbidden(fieldPath, "may not be specified when setHostnameAsFQDN is true"))
	}
	if s.HostNetwork {
		errs = append(errs, field.Forbidden(fieldPath, "may not be specified when hostNetwork is true"))
	}
	if len(*o) > maxKernelHostname {
		errs = append(errs, field.TooLong(fieldPath, "", maxKernelHostname))
	}
	return append(errs, checkRule(*o, fieldPath, validation.IsDNS1123Subdomain)...)
}

// Limits of dnsConfig (pkg/apis/core/validation of Kubernetes).
const (
	maxNameservers    = 3
	maxSearches       = 32
	maxSearchChars    = 2048
	maxKernelHostname = 64
)

// validateDNS checks a pod's DNS settings (ValidatePodSpec, validatePodDNSConfig and ValidateHostAliases of
// Kubernetes).
func validateDNS(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(s.DNSPolicy, path.Child("dnsPolicy"), corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	errs = append(errs, validateDNSConfig(s.DNSConfig, s.DNSPolicy, path.Child("dnsConfig"))...)
	errs = append(errs, checkOptional(s.Subdomain, path.Child("subdomain"), validation.IsDNS1123Label)...)
	for i, a := range s.HostAliases {
		fieldPath := path.Child("hostAliases").Index(i)
		errs = append(errs, validateAddress(a.IP, fieldPath.Child("ip"))...)
		for j, name := range a.Hostnames {
			errs = append(errs, checkRule(name, fieldPath.Child("hostnames").Index(j), validation.IsDNS1123Subdomain)...)
		}
	}
	return errs
}

// badAddress is the API server's message.
const badAddress = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

func validateAddress(ip string, path *field.Path) field.ErrorList {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.Zone() != "" {
		return field.ErrorList{field.Invalid(path, ip, badAddress)}
	}
	return nil
}

func validateDNSConfig(c *corev1.PodDNSConfig, policy corev1.DNSPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if policy == corev1.DNSNone && (c == nil || len(c.Nameservers) == 0) {
		fieldPath := path
		if c != nil {
			fieldPath = path.Child("nameservers")
		}
		return append(errs, field.Required(fieldPath, "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if c == nil {
		return nil
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.Invalid(path.Child("nameservers"), c.Nameservers, "must not have more than 3 nameservers"))
	}
	for i, ns := range c.Nameservers {
		errs = append(errs, validateAddress(ns, path.Child("nameservers").Index(i))...)
	}
	fieldPath := path.Child("searches")
	if len(c.Searches) > maxSearches {
		errs = append(errs, field.Invalid(fieldPath, c.Searches, "must not have more than 32 search paths"))
	}
	if len(strings.Join(c.Searches, " ")) > maxSearchChars {
		errs = append(errs, field.Invalid(fieldPath, c.Searches, "must not have more than 2048 characters (including spaces) in the search list"))
	}
	for i, search := range c.Searches {
		if search != "." {
			errs = append(errs, checkRule(trimDot(search), fieldPath.Index(i), validation.IsDNS1123SubdomainWithUnderscore)...)
		}
	}
	for i, o := range c.Options {
		fieldPath := path.Child("options").Index(i)
		if o.Name == "" {
			errs = append(errs, field.Required(fieldPath, "must not be empty"))
		}
		// podrun's own rule: the file has one line for all options.
		if text := o.Name + ptr.Deref(o.Value, ""); strings.ContainsAny(text, " \t\r\n\x00") {
			errs = append(errs, field.Invalid(fieldPath, text, "must not contain white space"))
		}
	}
	return errs
}

// validateNodeName checks the name that becomes the kernel's host name (the kubelet's
// truncatePodHostnameIfNeeded and GeneratePodHostNameAndDomain fail only when the pod starts).
func validateNodeName(p *corev1.Pod, path *field.Path) field.ErrorList {
	if !ptr.Deref(p.Spec.SetHostnameAsFQDN, false) || p.Spec.Subdomain == "" {
		return nil
	}
	plan := pod.Plan{Namespace: p.Namespace, Hostname: podutil.Hostname(p), Subdomain: p.Spec.Subdomain, HostnameAsFQDN: true}
	if name := plan.KernelHostname(); len(name) > maxKernelHostname {
		return field.ErrorList{field.Invalid(path.Child("setHostnameAsFQDN"), true, "the pod's FQDN "+name+" is too long (64 characters is the max)")}
	}
	return nil
}
