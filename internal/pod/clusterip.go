package pod

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
)

// Networks are an IPv4 /16 and an IPv6 /64. Of the first 65536 addresses of each, pods use the
// lower half and Services the upper.
type Networks struct{ V4, V6 netip.Prefix }

// DefaultNetworks are used unless they overlap with networks of the machine.
var DefaultNetworks = Networks{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88}), 16), netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x88}), 64)}

// NetworksOf returns the networks that contain the given addresses, one of each family.
func NetworksOf(addresses []netip.Addr) Networks {
	n := DefaultNetworks
	for _, a := range addresses {
		if a.Is4() {
			n.V4, _ = a.Prefix(16)
		} else {
			n.V6, _ = a.Prefix(64)
		}
	}
	return n
}

// ServiceAddresses is the maximum number of Services; firstService is the index of the first
// Service's address.
const (
	ServiceAddresses = 1<<15 - 2
	firstService     = 1<<15 + 1
)

// Service returns the addresses of Service i, IPv4 first.
func (n Networks) Service(i int) []netip.Addr {
	a4, a6 := n.V4.Addr().As4(), n.V6.Addr().As16()
	number := uint16(firstService + i)
	a4[2], a4[3] = byte(number>>8), byte(number)
	a6[14], a6[15] = byte(number>>8), byte(number)
	return []netip.Addr{netip.AddrFrom4(a4), netip.AddrFrom16(a6)}
}

// addressesOf returns the addresses of a Service that has number i, of its families only.
func (n Networks) addressesOf(s *Service, i int) []string {
	all := addressStrings(n.Service(i))
	byFamily := map[string]string{IPv4: all[0], IPv6: all[1]}
	if len(s.Families) == 0 {
		return all
	}
	var list []string
	for _, family := range s.Families {
		list = append(list, byFamily[family])
	}
	return list
}

// indexOf is the inverse of Networks.Service for any network; -1 if the address is not a Service's.
func indexOf(address string) int {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return -1
	}
	b := a.AsSlice()
	i := (int(b[len(b)-2])<<8 | int(b[len(b)-1])) - firstService
	if i < 0 || i >= ServiceAddresses {
		return -1
	}
	return i
}

// AssignClusterIPs assigns virtual addresses to a Service that needs some and has none. It prefers the
// Service's previous addresses, if they are still free. A Service that names addresses gets them if
// they are free; if it has both families, together with the other one's address. others are all Services.
func (n Networks) AssignClusterIPs(o *Object, others []*Object) error {
	s := o.Service
	if s == nil || s.Headless() || s.Type == ServiceExternalName {
		return nil
	}
	taken := map[int]*Object{}
	for _, other := range others {
		if other.Service == nil || other.Namespace == o.Namespace && other.Name == o.Name {
			continue
		}
		for _, ip := range other.Service.ClusterIPs {
			taken[indexOf(ip)] = other
		}
	}
	if len(s.ClusterIPs) > 0 {
		return n.assignNamed(s, taken)
	}
	h := fnv.New32a()
	h.Write([]byte(o.Namespace + "/" + o.Name))
	preferred := int(h.Sum32() % ServiceAddresses)
	for i := range ServiceAddresses {
		if index := (preferred + i) % ServiceAddresses; taken[index] == nil {
			s.ClusterIPs = n.addressesOf(s, index)
			return nil
		}
	}
	return fmt.Errorf("find an address for Service %s: all %d are taken", o.Name, ServiceAddresses)
}

// assignNamed checks the addresses that a manifest names.
func (n Networks) assignNamed(s *Service, taken map[int]*Object) error {
	i := indexOf(s.ClusterIPs[0])
	for _, ip := range s.ClusterIPs {
		if i < 0 || !slices.Contains(addressStrings(n.Service(i)), ip) {
			first, last := n.Service(0), n.Service(ServiceAddresses-1)
			return fmt.Errorf("spec.clusterIPs: Invalid value: %q: Services' addresses are %s to %s and %s to %s, one number in both", ip, first[0], last[0], first[1], last[1])
		}
	}
	if other := taken[i]; other != nil {
		return fmt.Errorf("spec.clusterIPs: Invalid value: %q: Service %s in namespace %s uses it", s.ClusterIPs[0], other.Name, other.Namespace)
	}
	all := n.addressesOf(s, i)
	if len(s.Families) == 0 && s.ClusterIPs[0] != all[0] {
		slices.Reverse(all)
	}
	s.ClusterIPs = all
	return nil
}

// Renumber moves a Service's addresses to these networks, and reports whether it changed any.
func (n Networks) Renumber(s *Service) bool {
	if s.Headless() || len(s.ClusterIPs) == 0 {
		return false
	}
	i := indexOf(s.ClusterIPs[0])
	if i < 0 {
		return false
	}
	all := n.addressesOf(s, i)
	if len(s.Families) == 0 && netip.MustParseAddr(s.ClusterIPs[0]).Is6() {
		slices.Reverse(all)
	}
	if slices.Equal(all, s.ClusterIPs) {
		return false
	}
	s.ClusterIPs = all
	return true
}

func addressStrings(addresses []netip.Addr) []string {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	return list
}
