package netpolicy

import "net/netip"

// Catalog is the set of all policies and pods of a user.
type Catalog struct {
	Policies   []Policy
	Pods       []Pod                        // living pods only
	Namespaces map[string]map[string]string // labels by name; a namespace without labels may be missing
}

// Policy is one NetworkPolicy. Rules of a direction have no effect unless the policy isolates its
// pods in that direction.
type Policy struct {
	Namespace       string
	Pods            Selector // the pods of the namespace that it applies to
	IsolatesIngress bool
	IsolatesEgress  bool
	Ingress, Egress []Rule
}

// Rule allows connections with any of its peers to any of its ports.
type Rule struct {
	Peers []Peer // empty: everybody
	Ports []Port // empty: all ports of all protocols
}

// Peer is a group of pods, or a block of addresses.
type Peer struct {
	Pods       Selector // nil: all pods of the namespaces
	Namespaces Selector // nil: the namespace of the policy
	Block      *Block   // nil: pods
}

// Block is a prefix without the prefixes in Except.
type Block struct {
	CIDR   netip.Prefix
	Except []netip.Prefix
}

// Port is a range of ports of a protocol, or, if Name is set, the port of that name of the pod that
// is connected to.
type Port struct {
	Protocol    string // "TCP", "UDP"
	Name        string
	First, Last uint16
}

// Selector selects by labels.
type Selector interface {
	Matches(labels map[string]string) bool
}

// Pod is one living pod of the router.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	Addresses       []netip.Addr
	Device          int          // index of its device in the router; 0: it is in another router
	Node            []netip.Addr // this host in the pod: its gateway, its resolver
	Ports           []NamedPort
}

// NamedPort is a port of a container that has a name.
type NamedPort struct {
	Name, Protocol string
	Port           uint16
}

// port returns the number of a named port; 0 if the pod has no such port.
func (p *Pod) port(of Port) uint16 {
	for _, n := range p.Ports {
		if n.Name == of.Name && n.Protocol == of.Protocol {
			return n.Port
		}
	}
	return 0
}
