package netpolicy

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Isolation is what the policies allow for one pod.
type Isolation struct {
	Device          int
	Own             []netip.Addr // the pod's addresses: it may always reach itself
	Node            []netip.Addr // this host's addresses as the pod sees them: the host may always connect, and answers DNS
	Ingress, Egress Filter
}

// Filter is what is allowed in one direction. The zero Filter allows everything.
type Filter struct {
	Isolated bool
	Allowed  []Allow
}

// Allow is a set of allowed connections: every peer in it, to every port in it.
type Allow struct {
	Everybody bool
	Addresses []netip.Addr
	Blocks    []Block
	Ports     []PortRange // empty: all ports of all protocols
}

// PortRange is a range of ports of a protocol.
type PortRange struct {
	Protocol    string
	First, Last uint16
}

// Allows reports whether a connection is allowed: for ingress from peer to a port of the pod, for
// egress to a port of peer.
func (f *Filter) Allows(peer netip.Addr, protocol string, port uint16) bool {
	return !f.Isolated || slices.ContainsFunc(f.Allowed, func(a Allow) bool {
		return a.hasPeer(peer) && a.hasPort(protocol, port)
	})
}

func (a *Allow) hasPeer(peer netip.Addr) bool {
	return a.Everybody || slices.Contains(a.Addresses, peer) || slices.ContainsFunc(a.Blocks, func(b Block) bool {
		return b.CIDR.Contains(peer) && !slices.ContainsFunc(b.Except, func(p netip.Prefix) bool { return p.Contains(peer) })
	})
}

func (a *Allow) hasPort(protocol string, port uint16) bool {
	return len(a.Ports) == 0 || slices.ContainsFunc(a.Ports, func(r PortRange) bool {
		return r.Protocol == protocol && r.First <= port && port <= r.Last
	})
}

// Isolate returns the Isolation of each pod that a policy selects, in a stable order. A pod is
// isolated in a direction if a policy of that direction selects it; then what any of these policies
// allows is allowed.
func (c *Catalog) Isolate() []Isolation {
	pods := slices.Clone(c.Pods)
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var all []Isolation
	for i := range pods {
		p := &pods[i]
		is := Isolation{Device: p.Device, Own: p.Addresses, Node: p.Node}
		for j := range c.Policies {
			n := &c.Policies[j]
			if n.Namespace != p.Namespace || !n.Pods.Matches(p.Labels) {
				continue
			}
			if n.IsolatesIngress {
				is.Ingress.Isolated = true
				for k := range n.Ingress {
					is.Ingress.Allowed = append(is.Ingress.Allowed, n.Ingress[k].ingress(n.Namespace, p, pods, c)...)
				}
			}
			if n.IsolatesEgress {
				is.Egress.Isolated = true
				for k := range n.Egress {
					is.Egress.Allowed = append(is.Egress.Allowed, n.Egress[k].egress(n.Namespace, pods, c)...)
				}
			}
		}
		if p.Device != 0 && (is.Ingress.Isolated || is.Egress.Isolated) {
			all = append(all, is)
		}
	}
	return all
}

// ingress returns what a rule allows for connections to a pod. A named port is the pod's own.
func (r *Rule) ingress(namespace string, to *Pod, pods []Pod, c *Catalog) []Allow {
	a, _ := r.peers(namespace, pods, c)
	for _, port := range r.Ports {
		if port.Name == "" {
			a.Ports = append(a.Ports, PortRange{port.Protocol, port.First, port.Last})
		} else if n := to.port(port); n != 0 {
			a.Ports = append(a.Ports, PortRange{port.Protocol, n, n})
		}
	}
	if len(r.Ports) > 0 && len(a.Ports) == 0 || a.isEmpty() {
		return nil
	}
	return []Allow{a}
}

// egress returns what a rule allows for connections from a pod. A named port is one of the pod that
// is connected to, so it may differ between pods, and blocks have none.
func (r *Rule) egress(namespace string, pods []Pod, c *Catalog) (all []Allow) {
	a, selected := r.peers(namespace, pods, c)
	for _, port := range r.Ports {
		if port.Name == "" {
			a.Ports = append(a.Ports, PortRange{port.Protocol, port.First, port.Last})
			continue
		}
		byNumber := map[uint16][]netip.Addr{}
		for _, p := range selected {
			if n := p.port(port); n != 0 {
				byNumber[n] = append(byNumber[n], p.Addresses...)
			}
		}
		for _, n := range slices.Sorted(maps.Keys(byNumber)) {
			all = append(all, Allow{Addresses: byNumber[n], Ports: []PortRange{{port.Protocol, n, n}}})
		}
	}
	if (len(r.Ports) == 0 || len(a.Ports) > 0) && !a.isEmpty() {
		all = append(all, a)
	}
	return all
}

func (a *Allow) isEmpty() bool { return !a.Everybody && len(a.Addresses)+len(a.Blocks) == 0 }

// peers returns an Allow with the peers of a rule, and the pods among them.
func (r *Rule) peers(namespace string, pods []Pod, c *Catalog) (a Allow, selected []*Pod) {
	a.Everybody = len(r.Peers) == 0
	for _, peer := range r.Peers {
		if peer.Block != nil {
			a.Blocks = append(a.Blocks, *peer.Block)
		}
	}
	for i := range pods {
		p := &pods[i]
		if a.Everybody || slices.ContainsFunc(r.Peers, func(peer Peer) bool { return peer.selects(p, namespace, c) }) {
			selected = append(selected, p)
			if !a.Everybody {
				a.Addresses = append(a.Addresses, p.Addresses...)
			}
		}
	}
	return a, selected
}

// selects reports whether a pod is among the pods of a peer.
func (n *Peer) selects(p *Pod, namespace string, c *Catalog) bool {
	switch {
	case n.Block != nil:
		return false
	case n.Namespaces == nil && p.Namespace != namespace,
		n.Namespaces != nil && !n.Namespaces.Matches(c.namespaceLabels(p.Namespace)):
		return false
	}
	return n.Pods == nil || n.Pods.Matches(p.Labels)
}

// nameLabel is the label that every namespace has; its value is the namespace's name (Kubernetes:
// v1.LabelMetadataName).
const nameLabel = "kubernetes.io/metadata.name"

func (c *Catalog) namespaceLabels(name string) map[string]string {
	labels := maps.Clone(c.Namespaces[name])
	if labels == nil {
		labels = map[string]string{}
	}
	labels[nameLabel] = name
	return labels
}
