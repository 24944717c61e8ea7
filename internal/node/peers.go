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
	errOverlap  = errors.New("its networks for pods overlap the networks of another node")
	errSameKey  = errors.New("another node has the same public key")
)

// The prefix lengths of a node's largest networks: a larger network would take traffic that is for other hosts.
const minBits4, minBits6 = 16, 48

// annotations returns the annotations by which other nodes find this one; none without a network.
func (n *Network) annotations() map[string]string {
	if n == nil {
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

// peersOf returns the nodes with which this node exchanges packets of pods, and why other nodes are no peers. Of
// two nodes that exclude each other it takes the older one. key and networks are this node's public key and networks, routes
// the destinations of the host's routes.
func peersOf(nodes []*corev1.Node, self string, key control.Key, networks, routes []netip.Prefix) (peers []control.Peer, problems map[string]error) {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	problems = map[string]error{}
	taken, keys := slices.Clone(networks), map[control.Key]bool{key: true}
	for _, n := range nodes {
		if n.Name == self || n.Annotations[annotationKey] == "" && n.Annotations[annotationEndpoint] == "" {
			continue // it has another network, or none
		}
		p, err := peerOf(n)
		overlaps := func(a netip.Prefix) bool { return slices.ContainsFunc(taken, a.Overlaps) }
		switch {
		case err == nil && len(p.Networks) == 0: // it has just joined
			continue
		case err == nil && keys[p.PublicKey]:
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
			problems[n.Name] = err
			continue
		}
		keys[p.PublicKey] = true
		taken = append(taken, p.Networks...)
		peers = append(peers, p)
	}
	return peers, problems
}

// peerOf reads the annotations of a node.
func peerOf(n *corev1.Node) (p control.Peer, err error) {
	if err := p.PublicKey.UnmarshalText([]byte(n.Annotations[annotationKey])); err != nil {
		return p, fmt.Errorf("annotation %s: %w", annotationKey, err)
	}
	p.Endpoint, err = netip.ParseAddrPort(n.Annotations[annotationEndpoint])
	if a := p.Endpoint.Addr(); err != nil || p.Endpoint.Port() == 0 || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
		return p, fmt.Errorf("annotation %s: %w", annotationEndpoint, errEndpoint)
	}
	p.Networks, err = podCIDRs(n)
	return p, err
}
