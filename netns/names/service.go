package names

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podrun/podrun/netns/services"
)

// fullName is a Service's, without the dot at its end.
func fullName(s *services.Service) string {
	return s.Name + "." + s.Namespace + ".svc." + cluster
}

// ofService is what there is of a Service (Kubernetes' DNS specification, 2.3 and 2.4).
// Its servers are those of its ports with a name and a protocol; "": of all.
func (v *View) ofService(s *services.Service, port, protocol string) *found {
	if s.ExternalName != "" {
		return &found{alias: strings.ToLower(strings.TrimSuffix(s.ExternalName, "."))}
	}
	f := &found{addresses: s.Addresses}
	var pods []*services.Pod
	if s.Headless() {
		pods = v.Backing(s)
		for _, p := range pods {
			f.addresses = append(f.addresses, p.Addresses...)
		}
	}
	for _, p := range s.Ports {
		if port != "" && (strings.ToLower(p.Name) != port || strings.ToLower(p.Protocol) != protocol) {
			continue
		}
		if !s.Headless() {
			f.servers = append(f.servers, server{fullName(s), p.Port})
			continue
		}
		for _, b := range pods {
			for _, name := range memberNames(s, b) {
				if on := p.On(b); on != 0 {
					f.servers = append(f.servers, server{name + "." + fullName(s), on})
				}
			}
		}
	}
	return f
}

// memberNames are those of a pod within a Service: its hostname if it has chosen the
// Service for its subdomain, or its addresses'.
func memberNames(s *services.Service, p *services.Pod) []string {
	if p.Subdomain == s.Name && p.Hostname != "" {
		return []string{p.Hostname}
	}
	var names []string
	for _, a := range p.Addresses {
		names = append(names, dashed(a))
	}
	return names
}

// member is one pod of a Service, by its name within it.
func (v *View) member(s *services.Service, name string) *found {
	var f *found
	for _, p := range v.Backing(s) {
		if p.Subdomain == s.Name && p.Hostname == name {
			f = join(f, &found{addresses: p.Addresses})
			continue
		}
		for _, a := range p.Addresses {
			if s.Headless() && dashed(a) == name {
				f = join(f, &found{addresses: []netip.Addr{a}})
			}
		}
	}
	return f
}

// ofAddress gives the names of an address.
func (v *View) ofAddress(a netip.Addr) (f *found, ours bool) {
	for i := range v.Services {
		if s := &v.Services[i]; slices.Contains(s.Addresses, a) {
			return &found{names: []string{fullName(s)}}, true
		}
	}
	for i := range v.Pods {
		p := &v.Pods[i]
		if !slices.Contains(p.Addresses, a) {
			continue
		}
		name := p.Name
		if p.Subdomain != "" && p.Hostname != "" {
			name = p.Hostname + "." + p.Subdomain
		}
		return &found{names: []string{name + "." + p.Namespace + ".svc." + cluster}}, true
	}
	if slices.Contains(v.Host, a) {
		return &found{names: []string{"host." + internal}}, true
	}
	return nil, slices.ContainsFunc(v.Ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

// reversed reads the name of an address: 4.3.2.1.in-addr.arpa, or 32 hexadecimal digits
// below ip6.arpa.
func reversed(labels []string) (netip.Addr, bool) {
	if rest, ok := below(labels, "in-addr.arpa"); ok && len(rest) == 4 {
		rest = slices.Clone(rest)
		slices.Reverse(rest)
		a, err := netip.ParseAddr(strings.Join(rest, "."))
		return a, err == nil
	}
	rest, ok := below(labels, "ip6.arpa")
	if !ok || len(rest) != 32 {
		return netip.Addr{}, false
	}
	var text strings.Builder
	for i := range rest {
		text.WriteString(rest[31-i])
		if i%4 == 3 && i < 31 {
			text.WriteByte(':')
		}
	}
	a, err := netip.ParseAddr(text.String())
	return a, err == nil
}
