package services

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Catalog is the set of all Services and pods of a user.
type Catalog struct {
	Services []Service
	Pods     []Pod // living pods only
}

// Service is one Service.
type Service struct {
	Namespace, Name string
	Aliases         []string     // further names in the namespace, in lower case
	Addresses       []netip.Addr // virtual ones; empty: headless or with an ExternalName
	Family          int          // 4 or 6: its names have addresses of this IP version only; 0: of both
	ExternalName    string
	Selector        map[string]string // empty: selects no pod
	Fixed           []Pod             // without a selector: its endpoints, whatever else they are
	Ports           []Port
	PublishNotReady bool          // includes pods before they are ready
	Affinity        time.Duration // so long after its last connection a client stays with its pod, while the pod is ready; 0: no affinity
	OfCluster       bool          // only pods that reach the cluster reach its addresses
	External        []netip.Addr  // addresses outside the cluster; only for ApplyToNode
	LocalExternal   bool          // these and its node ports lead to endpoints of this node only; likewise
}

// Headless reports whether the Service stands for its pods' own addresses.
func (s *Service) Headless() bool { return len(s.Addresses) == 0 && s.ExternalName == "" }

// Names reports whether the Service's names may have an address, by its family.
func (s *Service) Names(a netip.Addr) bool { return s.Family == 0 || a.Is4() == (s.Family == 4) }

// Port leads from a port of a Service to a port of one of its pods: to the number Target, or, if
// that is 0, to the port named TargetName.
type Port struct {
	Name       string
	Protocol   string // "TCP", "UDP"
	Port       uint16
	Target     uint16
	TargetName string
	NodePort   uint16 // of the host; 0: none
}

// Pod is one living pod.
type Pod struct {
	Namespace, Name     string
	Hostname, Subdomain string
	Labels              map[string]string
	Addresses           []netip.Addr
	Ready               bool // and not terminating
	Terminating         bool
	ReachesCluster      bool // it reaches Services of the cluster
	UserSpaceStack      bool // its network is a user-space stack, which the router's sockets cannot reach transparently
	Ports               []NamedPort

	Fixed   bool // an endpoint that an object names: its ports have the names of the Service's ports
	Outside bool // a Fixed one that is not in the pods' network
	Remote  bool // a Fixed one of another node
}

// NamedPort is a port of a container that has a name.
type NamedPort struct {
	Name, Protocol string
	Port           uint16
}

// ParseAddrs parses addresses and skips other texts, such as the None of a headless Service.
func ParseAddrs(texts ...string) (list []netip.Addr) {
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// Selects reports whether a pod is an endpoint of a Service now.
func (s *Service) Selects(p *Pod) bool {
	if len(s.Selector) == 0 || p.Namespace != s.Namespace || !p.Ready && !s.PublishNotReady {
		return false
	}
	for k, v := range s.Selector {
		if had, ok := p.Labels[k]; !ok || had != v {
			return false
		}
	}
	return true
}

// TargetOn returns the pod's port that a Service's port leads to; 0: none, and the pod is not an
// endpoint of this port.
func (p Port) TargetOn(of *Pod) uint16 {
	name := p.TargetName
	switch {
	case of.Fixed:
		name = p.Name
	case name == "":
		return p.Target
	}
	for _, n := range of.Ports {
		if n.Name == name && n.Protocol == p.Protocol {
			return n.Port
		}
	}
	return 0
}

// Endpoints returns the pods behind a Service in a stable order.
func (d *Catalog) Endpoints(s *Service) []*Pod {
	var pods []*Pod
	for i := range d.Pods {
		if s.Selects(&d.Pods[i]) {
			pods = append(pods, &d.Pods[i])
		}
	}
	for i := range s.Fixed {
		if p := &s.Fixed[i]; p.Ready || s.PublishNotReady {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// endpointOn returns the endpoint of a Service that a pod is; nil if it is none.
func (s *Service) endpointOn(p *Pod) *Pod {
	if s.Selects(p) {
		return p
	}
	i := slices.IndexFunc(s.Fixed, func(e Pod) bool {
		return (e.Ready || s.PublishNotReady) && !e.Outside && s.Namespace == p.Namespace && slices.ContainsFunc(e.Addresses, func(a netip.Addr) bool { return slices.Contains(p.Addresses, a) })
	})
	if i < 0 {
		return nil
	}
	return &s.Fixed[i]
}

// NodePort is a port of the host that leads to one of a pod.
type NodePort struct {
	Protocol string
	Port, To uint16
	Affinity bool // its clients stay with their pods: see Affinity
}

// NodePorts returns the ports of the host that lead to a pod now, in a stable order: the ports of the
// Services whose endpoint it is.
func (d *Catalog) NodePorts(namespace, name string) []NodePort {
	var list []NodePort
	i := slices.IndexFunc(d.Pods, func(p Pod) bool { return p.Namespace == namespace && p.Name == name })
	for j := range d.Services {
		s := &d.Services[j]
		if i < 0 {
			continue
		}
		endpoint := s.endpointOn(&d.Pods[i])
		for _, p := range s.Ports {
			if endpoint == nil || p.NodePort == 0 {
				continue
			}
			if to := p.TargetOn(endpoint); to != 0 {
				list = append(list, NodePort{p.Protocol, p.NodePort, to, s.Affinity > 0})
			}
		}
	}
	slices.SortFunc(list, func(a, b NodePort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	return list
}

// route is the destination of a Service's address and port.
type route struct {
	from     netip.AddrPort
	protocol string
	to       []netip.AddrPort // in turn; empty: refuse
	affinity time.Duration
	cluster  bool // only the visitors of the cluster's Services reach it
	local    bool // it leads from outside the cluster to endpoints of this node only
	outside  bool // its endpoints are not in the pods' network: the client's own supervisor connects to them
}

// routes returns the routes of all Services in a stable order: equal directories give equal routes.
func (d *Catalog) routes() []route {
	var all []route
	for i := range d.Services {
		s := &d.Services[i]
		pods := d.Endpoints(s)
		for _, vip := range s.Addresses {
			for _, p := range s.Ports {
				if protocols[p.Protocol] == 0 {
					continue
				}
				r := route{from: netip.AddrPortFrom(vip, p.Port), protocol: p.Protocol, affinity: s.Affinity, cluster: s.OfCluster}
				r.to = p.endpoints(pods, vip.Is4())
				if to := p.outside(pods, vip.Is4()); len(to) > 0 {
					r.to, r.outside = to, true
				}
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, route.compare)
	return all
}

func (r route) compare(o route) int {
	return cmp.Or(r.from.Compare(o.from), cmp.Compare(r.protocol, o.protocol))
}

// visitors returns the addresses that reach the Services of the cluster, in a stable order; none without such
// Services.
func (d *Catalog) visitors() (all []netip.Addr) {
	if !slices.ContainsFunc(d.Services, func(s Service) bool { return s.OfCluster }) {
		return nil
	}
	for i := range d.Pods {
		if d.Pods[i].ReachesCluster {
			all = append(all, d.Pods[i].Addresses...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// outside returns the endpoints outside the pods' network of the client's family; if there are none, of the other family,
// which a proxy can reach as well.
func (p Port) outside(pods []*Pod, v4 bool) []netip.AddrPort {
	pods = slices.DeleteFunc(slices.Clone(pods), func(b *Pod) bool { return !b.Outside })
	if list := p.endpoints(pods, v4); len(list) > 0 {
		return list
	}
	return p.endpoints(pods, !v4)
}

// Outside returns the endpoint for a client's connection to the address of a Service whose endpoints are
// outside the pods' network. turn counts the connections of the client. ok is false for other addresses.
func (d *Catalog) Outside(client netip.Addr, protocol string, to netip.AddrPort, turn uint32, known Slots) (address netip.AddrPort, ok bool) {
	for i := range d.Services {
		s := &d.Services[i]
		if !slices.Contains(s.Addresses, to.Addr()) {
			continue
		}
		for _, p := range s.Ports {
			if p.Protocol != protocol || p.Port != to.Port() {
				continue
			}
			list := p.outside(d.Endpoints(s), to.Addr().Is4())
			switch {
			case len(list) == 0:
				return address, false
			case s.Affinity > 0:
				return bySlot(list)[known.Slot(to.Addr(), client, s.Affinity)], true
			}
			return list[turn%uint32(len(list))], true
		}
	}
	return address, false
}

// endpoints returns the endpoints of pods of one family; a pod has one address of each.
func (p Port) endpoints(pods []*Pod, v4 bool) (list []netip.AddrPort) {
	for _, b := range pods {
		port := p.TargetOn(b)
		i := slices.IndexFunc(b.Addresses, func(a netip.Addr) bool { return a.Is4() == v4 })
		if port != 0 && i >= 0 {
			list = append(list, netip.AddrPortFrom(b.Addresses[i], port))
		}
	}
	return list
}
