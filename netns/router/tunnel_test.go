package router

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/vishvananda/netlink"
)

func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		networks, want []string
	}{
		{nil, nil},
		{[]string{"10.244.2.0/24"}, []string{"10.244.2.0", "10.244.3.0"}},
		{[]string{"10.244.3.0/24", "fd00::/64", "10.244.2.0/24", "10.244.5.0/24"}, []string{"10.244.2.0", "10.244.4.0", "10.244.5.0", "10.244.6.0"}},
		{[]string{"10.244.255.0/24", "10.255.255.255/32"}, []string{"10.244.255.0", "10.245.0.0", "10.255.255.255", "11.0.0.0"}},
	} {
		var networks []netip.Prefix
		for _, n := range c.networks {
			networks = append(networks, netip.MustParsePrefix(n))
		}
		var got []string
		for i, e := range intervals(nft.IPv4, networks) {
			a, _ := netip.AddrFromSlice(e.Key)
			got = append(got, a.String())
			if e.IntervalEnd != (i%2 == 1) {
				t.Errorf("%v: element %d is an end: %v", c.networks, i, e.IntervalEnd)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.networks, got, c.want)
		}
	}
}

// The routes lead to the current peers, whatever was there before.
func TestSetPeers(t *testing.T) {
	r := Open(testenv.Network(t))
	if _, err := r.Prepare(); err != nil {
		t.Fatal(err)
	}
	tun, err := r.OpenTunnel(1420)
	if err != nil {
		t.Fatal(err)
	}
	defer tun.Close()
	var all []netip.Prefix
	for i := range 40 {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24), netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 1, 0, byte(i)}), 64))
	}
	for _, peers := range [][]netip.Prefix{all, all[:3], all[2:6], nil, all} {
		if err := r.SetPeers(all[:1], peers); err != nil {
			t.Fatal(err)
		}
		var got int
		err := r.Do(func() error {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: peerProtocol}, netlink.RT_FILTER_PROTOCOL)
			for _, route := range routes {
				if !slices.Contains(peers, toPrefix(route.Dst)) {
					t.Errorf("of %d peers: there is %s", len(peers), route)
				}
			}
			got = len(routes)
			return err
		})
		if want := 2 * len(supportedOnly(peers)); err != nil || got != want {
			t.Errorf("%d peers: %d routes, want %d: %v", len(peers), got, want, err)
		}
	}
}
