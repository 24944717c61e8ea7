package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/netpolicy"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/services"
)

// UpdatePolicies makes the router enforce the current NetworkPolicies for the user's pods. If that fails and the
// pod is isolated, it disconnects the pod. If this process only lacks descriptors or memory for a moment, the
// earlier rules stay instead.
func (n *Network) UpdatePolicies() error { return n.updatePolicies(n.listeningPorts) }

// updatePolicies is UpdatePolicies with the argument of netpolicy.Apply.
func (n *Network) updatePolicies(served func() ([]uint16, error)) error {
	if n.Slot == 0 || !n.store.HadNetworkPolicies() {
		return nil
	}
	lock, err := n.store.LockServices()
	if err != nil {
		return err
	}
	defer lock.Close()
	return n.applyPolicies(served)
}

func (n *Network) listeningPorts() ([]uint16, error) { return netpolicy.ListeningPorts(n.netns) }

// enforceFirst makes the router enforce the NetworkPolicies for a new pod, and between other pods and it. The pod
// has no container yet.
func (n *Network) enforceFirst() error {
	if !n.store.HadNetworkPolicies() {
		return nil
	}
	err := n.store.WriteEndpoint(n.publisher.latest())
	if err == nil {
		err = n.updatePolicies(nil)
	}
	if err != nil {
		return errors.Join(err, n.store.RemoveEndpoint())
	}
	return nil
}

// applyPolicies is updatePolicies for a caller that holds the lock.
func (n *Network) applyPolicies(served func() ([]uint16, error)) error {
	if !n.store.HadNetworkPolicies() {
		return nil
	}
	c, err := n.policyCatalog()
	if err != nil { // without one of its policies a pod would be too open
		return fmt.Errorf("read network policies: %w", err)
	}
	all := c.Isolate()
	isolation := n.isolation(all)
	if _, err := netpolicy.Apply(n.router(), all, router.DeviceIndex(n.Slot), served); err != nil {
		if (isolation.Ingress.Isolated || isolation.Egress.Isolated) && !store.IsExhausted(err) {
			err = errors.Join(err, n.cutOff(err))
		}
		return err
	}
	n.filterConnections(&isolation)
	return nil
}

// isolation returns the pod's Isolation; if no policy selects the pod, it isolates nothing.
func (n *Network) isolation(all []netpolicy.Isolation) (podIsolation netpolicy.Isolation) {
	for _, is := range all {
		if is.Device == router.DeviceIndex(n.Slot) {
			podIsolation = is
		}
	}
	return podIsolation
}

// allowsEgress reports whether the current NetworkPolicies allow a connection of the pod to a destination. It
// reads the policies each time: they may be newer than the rules in the router.
func (n *Network) allowsEgress(protocol string, to netip.AddrPort) bool {
	if !n.store.HadNetworkPolicies() {
		return true
	}
	c, err := n.policyCatalog()
	if err != nil {
		fmt.Fprintln(os.Stderr, "read network policies:", err)
		return false
	}
	isolation := n.isolation(c.Isolate())
	return isolation.Egress.Allows(to.Addr(), protocol, to.Port())
}

// cutOff disconnects the pod from the router, because its policies cannot be enforced.
func (n *Network) cutOff(because error) error {
	if n.Warn != nil {
		n.Warn(fmt.Sprintf("the pod is disconnected from the network until it is started again: %v", because))
	}
	return router.Open(n.router()).Disconnect(n.Slot)
}

// filterConnections ends the connections of this process that the pod's policies do not allow. The router's
// rules stop their packets, but notify only the pod.
func (n *Network) filterConnections(isolation *netpolicy.Isolation) {
	n.Ports.setFilter(func(client netip.Addr, protocol string, port int) bool {
		client = client.WithZone("") // no prefix contains an address with a zone
		return client.IsLoopback() || isolation.Ingress.Allows(client, protocol, uint16(port))
	})
	if proxy := n.proxy.Load(); proxy != nil {
		proxy.Cut(func(to netip.AddrPort) bool { return isolation.Egress.Allows(to.Addr(), "TCP", to.Port()) })
	}
}

// WarnOfPolicies reports that the router does not enforce the current policies.
func (n *Network) WarnOfPolicies(err error) {
	fmt.Fprintln(os.Stderr, err)
	if n.Warn != nil {
		n.Warn("changes of network policies are not in effect: " + err.Error())
	}
}

// policyCatalog returns the NetworkPolicies, and the pods that they concern.
func (n *Network) policyCatalog() (c netpolicy.Catalog, err error) {
	policies, err := n.store.AllNetworkPolicies()
	if err != nil || len(policies) == 0 {
		return c, err
	}
	namespaces, err := n.store.NamespaceObjects()
	if err != nil {
		return c, err
	}
	peers, err := n.store.Peers()
	if err != nil {
		return c, err
	}
	c.Namespaces = map[string]map[string]string{}
	for _, o := range namespaces {
		c.Namespaces[o.Name] = o.Labels
	}
	for _, o := range policies {
		c.Policies = append(c.Policies, toPolicy(o))
	}
	gateway := n.Pool.Gateway()
	node := []netip.Addr{gateway.V4, gateway.V6}
	if is, err := n.store.PodNetwork(); err != nil {
		return c, err
	} else if is.Node.IsValid() {
		node = append(node, is.Node)
	}
	for _, peer := range peers {
		p := netpolicy.Pod{
			Namespace: peer.Namespace, Name: peer.Name, Labels: peer.Labels, Addresses: services.ParseAddrs(peer.Addresses...),
			Node: slices.Clone(node),
		}
		for _, a := range p.Addresses {
			if s := n.Pool.SlotOf(a); s != ipam.Slot(0) {
				p.Device = router.DeviceIndex(s)
			}
		}
		if peer.Stack {
			p.Node = append(p.Node, stackproto.ResolverAddr)
		}
		for _, port := range peer.Ports {
			p.Ports = append(p.Ports, netpolicy.NamedPort{Name: port.Name, Protocol: port.Protocol, Port: uint16(port.Number)})
		}
		c.Pods = append(c.Pods, p)
	}
	return c, nil
}

func toPolicy(o *pod.Object) netpolicy.Policy {
	from := o.NetworkPolicy
	p := netpolicy.Policy{Namespace: o.Namespace, Pods: &from.Pods, IsolatesIngress: from.Ingress != nil, IsolatesEgress: from.Egress != nil}
	if from.Ingress != nil {
		p.Ingress = toRules(from.Ingress.Rules)
	}
	if from.Egress != nil {
		p.Egress = toRules(from.Egress.Rules)
	}
	return p
}

func toRules(rules []pod.NetworkPolicyRule) (all []netpolicy.Rule) {
	for _, r := range rules {
		var rule netpolicy.Rule
		for _, p := range r.Peers {
			peer := netpolicy.Peer{Block: toBlock(p)}
			if p.Pods != nil {
				peer.Pods = p.Pods
			}
			if p.Namespaces != nil {
				peer.Namespaces = p.Namespaces
			}
			rule.Peers = append(rule.Peers, peer)
		}
		for _, p := range r.Ports {
			rule.Ports = append(rule.Ports, netpolicy.Port{Protocol: p.Protocol, Name: p.Name, First: uint16(p.First), Last: uint16(p.Last)})
		}
		all = append(all, rule)
	}
	return all
}

// toBlock returns a peer's block of addresses, nil if the peer is a group of pods. A damaged block contains no
// address.
func toBlock(p pod.NetworkPolicyPeer) *netpolicy.Block {
	if p.CIDR == "" {
		return nil
	}
	nothing := &netpolicy.Block{CIDR: netip.PrefixFrom(netip.IPv4Unspecified(), 32)}
	cidr, err := netip.ParsePrefix(p.CIDR)
	if err != nil {
		return nothing
	}
	b := &netpolicy.Block{CIDR: cidr}
	for _, text := range p.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			return nothing
		}
		b.Except = append(b.Except, except)
	}
	return b
}
