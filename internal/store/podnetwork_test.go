package store

import (
	"net/netip"
	"testing"
)

// The lease of a pod fits the pod network, or the network cannot change while the pod lives.
func TestLeaseIsOfNetwork(t *testing.T) {
	addresses := func(texts ...string) (all []netip.Addr) {
		for _, a := range texts {
			all = append(all, netip.MustParseAddr(a))
		}
		return all
	}
	network := func(texts ...string) (n PodNetwork) {
		for _, c := range texts {
			n.CIDRs = append(n.CIDRs, netip.MustParsePrefix(c))
		}
		return n
	}
	own := Lease{Addresses: addresses("10.88.0.2", "fd88::2")}
	node := Lease{Addresses: addresses("10.244.1.2", "fd88::2"), Gateway: addresses("10.88.0.1", "fd88::1")}
	for _, c := range []struct {
		lease   Lease
		network PodNetwork
		want    bool
	}{
		{own, network(), true},
		{own, network("10.244.1.0/24"), false},
		{own, network("10.88.0.0/24"), false}, // it may have an address of this network, but not its routes
		{node, network("10.244.1.0/24"), true},
		{node, network("10.244.2.0/24"), false},
		{node, network("10.244.1.0/24", "fd00:1::/64"), false},
		{node, network(), false},
		{Lease{Addresses: addresses("10.244.1.2"), Gateway: addresses("10.88.0.1")}, network("10.244.1.0/24", "fd00:1::/64"), true}, // a kernel without IPv6
	} {
		if got := c.lease.isOf(c.network); got != c.want {
			t.Errorf("%v in %v: %v, want %v", c.lease.Addresses, c.network.CIDRs, got, c.want)
		}
	}
	if n := node.Networks(); n.V4.String() != "10.88.0.0/16" || n.V6.String() != "fd88::/64" {
		t.Errorf("Services have %v", n)
	}
}

func TestSetPodNetwork(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	network := PodNetwork{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, MTU: 1420}
	peers := network
	peers.Peers = []PodNetworkPeer{{Key: "k", Endpoint: netip.MustParseAddrPort("192.0.2.2:51820"), CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}}}
	p := d.Pod("default", "a")
	stamp := p.EndpointVersion()
	for _, c := range []struct {
		to      PodNetwork
		changes bool
	}{{PodNetwork{}, false}, {network, true}, {network, false}, {peers, true}, {network, true}, {PodNetwork{}, true}} {
		others, err := d.SetPodNetwork(c.to)
		if err != nil || len(others) > 0 {
			t.Fatalf("%v: %v, %v", c.to, others, err)
		}
		got, err := d.PodNetwork()
		if err != nil || got.MTU != c.to.MTU || len(got.Peers) != len(c.to.Peers) {
			t.Errorf("%v: %v, %v", c.to, got, err)
		}
		now := p.EndpointVersion()
		if (now != stamp) != c.changes {
			t.Errorf("%v: a change is published: %v", c.to, now != stamp)
		}
		stamp = now
	}
}
