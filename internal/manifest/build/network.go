package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func dns(s *corev1.PodSpec) pod.DNS {
	var d pod.DNS
	if s.DNSPolicy != corev1.DNSClusterFirst {
		d.Policy = string(s.DNSPolicy)
	}
	if c := s.DNSConfig; c != nil {
		d.Nameservers, d.Searches = c.Nameservers, c.Searches
		for _, o := range c.Options {
			option := o.Name
			if value := ptr.Deref(o.Value, ""); value != "" {
				option += ":" + value
			}
			d.Options = append(d.Options, option)
		}
	}
	return d
}

func hostAliases(s *corev1.PodSpec) []pod.HostAlias {
	var list []pod.HostAlias
	for _, a := range s.HostAliases {
		list = append(list, pod.HostAlias{IP: a.IP, Hostnames: a.Hostnames})
	}
	return list
}

// names returns the names of the host and the name servers that the annotations of a valid Pod request.
func names(p *corev1.Pod) (host, servers []string) {
	if value, ok := p.Annotations[podutil.AnnotationHostNames]; ok {
		host, _ = podutil.ParseHostNames(value)
	}
	if value, ok := p.Annotations[podutil.AnnotationDNSServers]; ok {
		servers, _ = podutil.ParseDNSServers(value)
	}
	return host, servers
}

// subdomain returns the pod's subdomain; with hostnameOverride there is none.
func subdomain(p *corev1.Pod) string {
	if p.Spec.HostnameOverride != nil {
		return ""
	}
	return p.Spec.Subdomain
}
