package network

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/netns/netpolicy"
)

// A client with a link-local address has a zone, which no block of a policy has.
func TestLinkLocalClient(t *testing.T) {
	n := &Network{Ports: NewHostPorts(nil)}
	block := netpolicy.Block{CIDR: netip.MustParsePrefix("fe80::/16"), Except: []netip.Prefix{netip.MustParsePrefix("fe80::1/128")}}
	n.filterConnections(&netpolicy.Isolation{Ingress: netpolicy.Filter{Isolated: true, Allowed: []netpolicy.Allow{{Blocks: []netpolicy.Block{block}}}}})
	for client, want := range map[string]bool{"fe80::7%eth0": true, "fe80::1%eth0": false, "fd00::7": false, "::1": true} {
		if got := n.Ports.filter(netip.MustParseAddr(client), "TCP", 80); got != want {
			t.Errorf("%s: allowed is %v, want %v", client, got, want)
		}
	}
}
