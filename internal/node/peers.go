package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/netns/wireguard/control"
)

// Annotations by which nodes find each other.
const (
	annotationKey      = "podrun.dev/wireguard-public-key" // base64
	annotationEndpoint = "podrun.dev/wireguard-endpoint"   // ADDRESS:PORT
)

// Why a node is no peer.
var (
	errEndpoint = errors.New("it is not the address and the port of a host")
	errAddress  = errors.New("it has no InternalIP of a host in IPv4")
	errOverlap  = errors.New("its networks for pods overlap the networks of another node")
	errSameKey  = errors.New("another node has the same public key")
	errSameIP   = errors.New("another node has the same InternalIP")
)

// The prefix lengths of a node's largest networks: a larger network would take traffic that is for other hosts.
const minBits4, minBits6 = 16, 48

// annotations returns the annotations by which other nodes find this one; none without a network.
func (n *Network) annotations() map[string]string {
	if n == nil || n.Routed {
		return nil
	}
	key, _ := n.Key.MarshalText() // cannot fail
	return map[string]string{annotationKey: string(key), annotationEndpoint: n.Endpoint.String()}
}

// podCIDRs returns the networks that the cluster has given to a node, none before it has.
func podCIDRs(n *corev1.Node) (all []netip.Prefix, err error) {
	texts := n.Spec.PodCIDRs
	if len(texts) == 0 && n.Spec.PodCIDR != "" {
		texts = []string{n.Spec.PodCIDR}
	}
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() || p.Addr().Is4() && p.Bits() < minBits4 || p.Addr().Is6() && p.Bits() < minBits6 || slices.ContainsFunc(all, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() }) {
			return nil, fmt.Errorf("spec.podCIDRs of node %s must be at most one IPv4 network (/%d or smaller) and one IPv6 network (/%d or smaller), not %s", n.Name, minBits4, minBits6, strings.Join(texts, ", "))
		}
		if err := checkPrivate(p); err != nil {
			return nil, fmt.Errorf("spec.podCIDRs of node %s: %w", n.Name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// podCIDRs is the function podCIDRs without the networks that this network does not use.
func (n *Network) podCIDRs(of *corev1.Node) ([]netip.Prefix, error) {
	all, err := podCIDRs(of)
	return slices.DeleteFunc(all, func(p netip.Prefix) bool { return n.Routed && p.Addr().Is6() }), err
}

// peersOf returns the nodes with which this node exchanges packets of pods, and why other nodes are no peers. Of
// two nodes that exclude each other it takes the older one. networks are this node's networks, routes
// the destinations of the host's routes.
func (n *Network) peersOf(nodes []*corev1.Node, self string, networks, routes []netip.Prefix) (peers []control.Peer, problems map[string]error) {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	problems = map[string]error{}
	taken, ids := slices.Clone(networks), map[any]bool{n.identity(n.Key, n.Endpoint): true}
	for _, o := range nodes {
		announced := o.Annotations[annotationKey] != "" || o.Annotations[annotationEndpoint] != ""
		if n.Routed {
			announced = len(o.Status.Addresses) > 0
		}
		if o.Name == self || !announced {
			continue // it has another network or none, or it has just joined
		}
		p, err := n.peerOf(o)
		id := n.identity(p.PublicKey, p.Endpoint)
		overlaps := func(a netip.Prefix) bool { return slices.ContainsFunc(taken, a.Overlaps) }
		switch {
		case err == nil && len(p.Networks) == 0 && !n.Routed: // it has just joined
			continue
		case err == nil && ids[id] && n.Routed:
			err = errSameIP
		case err == nil && ids[id]:
			err = errSameKey
		case err == nil && slices.ContainsFunc(p.Networks, overlaps):
			err = errOverlap
		}
		for _, network := range p.Networks {
			if err == nil {
				err = checkNetwork(network, routes)
			}
		}
		if err != nil {
			problems[o.Name] = err
			continue
		}
		ids[id] = true
		taken = append(taken, p.Networks...)
		peers = append(peers, p)
	}
	return peers, problems
}

// identity returns what two nodes must not have in common.
func (n *Network) identity(key control.Key, endpoint netip.AddrPort) any {
	if n.Routed {
		return endpoint
	}
	return key
}

// peerOf reads the annotations of a node or, if the nodes route, its address.
func (n *Network) peerOf(o *corev1.Node) (p control.Peer, err error) {
	if n.Routed {
		p.Endpoint = netip.AddrPortFrom(internalIP(o), 0)
		if !isOfHost(p.Endpoint.Addr()) {
			return p, errAddress
		}
		p.Networks, err = n.podCIDRs(o)
		return p, err
	}
	if err := p.PublicKey.UnmarshalText([]byte(o.Annotations[annotationKey])); err != nil {
		return p, fmt.Errorf("annotation %s: %w", annotationKey, err)
	}
	p.Endpoint, err = netip.ParseAddrPort(o.Annotations[annotationEndpoint])
	if err != nil || p.Endpoint.Port() == 0 || !isOfHost(p.Endpoint.Addr()) {
		return p, fmt.Errorf("annotation %s: %w", annotationEndpoint, errEndpoint)
	}
	p.Networks, err = podCIDRs(o)
	return p, err
}

// isOfHost reports whether an address may be one at which other hosts reach a host.
func isOfHost(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback()
}

// internalIP returns the first InternalIP of a node in IPv4; the zero Addr if it has none.
func internalIP(n *corev1.Node) netip.Addr {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == corev1.NodeInternalIP && err == nil && ip.Is4() {
			return ip
		}
	}
	return netip.Addr{}
}
