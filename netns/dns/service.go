package dns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podrun/podrun/netns/services"
)

// fullName returns a Service's name, without the final dot.
func (v *View) fullName(s *services.Service) string {
	return s.Name + "." + s.Namespace + ".svc." + v.domain()
}

// serviceRecords returns the records of a Service (Kubernetes' DNS specification, 2.3 and 2.4). SRV
// records are of the ports with a name and a protocol; "": of all.
func (v *View) serviceRecords(s *services.Service, port, protocol string) *records {
	if s.ExternalName != "" {
		return &records{alias: strings.ToLower(strings.TrimSuffix(s.ExternalName, "."))}
	}
	f := &records{addresses: s.Addresses}
	var pods []*services.Pod
	if s.Headless() {
		pods = v.Endpoints(s)
		for _, p := range pods {
			f.addresses = append(f.addresses, ofFamily(s, p.Addresses)...)
		}
	}
	for _, p := range s.Ports {
		if port != "" && (strings.ToLower(p.Name) != port || strings.ToLower(p.Protocol) != protocol) {
			continue
		}
		if !s.Headless() {
			f.srv = append(f.srv, srvTarget{v.fullName(s), p.Port})
			continue
		}
		for _, b := range pods {
			for _, name := range memberNames(s, b) {
				if on := p.TargetOn(b); on != 0 {
					f.srv = append(f.srv, srvTarget{name + "." + v.fullName(s), on})
				}
			}
		}
	}
	return f
}

// memberNames returns the names of a pod within a Service: its hostname if its subdomain is the
// Service, or the names of its addresses.
func memberNames(s *services.Service, p *services.Pod) []string {
	if p.Subdomain == s.Name && p.Hostname != "" {
		return []string{p.Hostname}
	}
	var names []string
	for _, a := range ofFamily(s, p.Addresses) {
		names = append(names, dashed(a))
	}
	return names
}

// ofFamily returns the addresses that the names of a Service have.
func ofFamily(s *services.Service, addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !s.Names(a) })
}

// lookupMember looks up one pod of a Service by its name within the Service.
func (v *View) lookupMember(s *services.Service, name string) *records {
	var f *records
	for _, p := range v.Endpoints(s) {
		if p.Subdomain == s.Name && p.Hostname == name {
			f = merge(f, &records{addresses: ofFamily(s, p.Addresses)})
			continue
		}
		for _, a := range ofFamily(s, p.Addresses) {
			if s.Headless() && dashed(a) == name {
				f = merge(f, &records{addresses: []netip.Addr{a}})
			}
		}
	}
	return f
}

// lookupAddress returns the names of an address.
func (v *View) lookupAddress(a netip.Addr) (f *records, authoritative bool) {
	for i := range v.Services {
		if s := &v.Services[i]; slices.Contains(s.Addresses, a) {
			return &records{ptr: []string{v.fullName(s)}}, true
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
		return &records{ptr: []string{name + "." + p.Namespace + ".svc." + v.domain()}}, true
	}
	if slices.Contains(v.Host, a) {
		return &records{ptr: []string{"host." + internal}}, true
	}
	return nil, slices.ContainsFunc(v.Ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

// parseReverse parses the name of an address: 4.3.2.1.in-addr.arpa, or 32 hexadecimal digits below
// ip6.arpa.
func parseReverse(labels []string) (netip.Addr, bool) {
	if rest, ok := trimZone(labels, "in-addr.arpa"); ok && len(rest) == 4 {
		rest = slices.Clone(rest)
		slices.Reverse(rest)
		a, err := netip.ParseAddr(strings.Join(rest, "."))
		return a, err == nil
	}
	rest, ok := trimZone(labels, "ip6.arpa")
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
