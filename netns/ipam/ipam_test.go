package ipam

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func TestChoosePool(t *testing.T) {
	for _, c := range []struct {
		networks []netip.Prefix
		v4, v6   string
	}{
		{nil, "10.88.0.0/16", "fd88::/64"},
		{prefixes("192.168.1.0/24", "fe80::/64", "10.87.0.0/16"), "10.88.0.0/16", "fd88::/64"},
		{prefixes("10.88.0.0/16"), "10.89.0.0/16", "fd88::/64"},
		{prefixes("10.88.7.3/32", "10.89.0.0/24", "fd88::/48"), "10.107.0.0/16", "fd89::/64"},
		{prefixes("10.0.0.0/8"), "172.22.0.0/16", "fd88::/64"},
		{prefixes("10.0.0.0/8", "172.16.0.0/12"), "192.168.0.0/16", "fd88::/64"},
		{prefixes("0.0.0.0/1", "128.0.0.0/1", "::/0", "0.0.0.0/0"), "10.88.0.0/16", "fd88::/64"}, // a VPN for all traffic
	} {
		p, err := ChoosePool(c.networks)
		if err != nil || p.V4.String() != c.v4 || p.V6.String() != c.v6 {
			t.Errorf("%v: %v %v, %v; want %s %s", c.networks, p.V4, p.V6, err, c.v4, c.v6)
		}
	}
	if p, err := ChoosePool(prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15")); err == nil {
		t.Errorf("a pool is left: %v", p)
	}
}

// Every slot has addresses of its own, which end neither in 0 nor in 255 and are not used
// otherwise.
func TestSlots(t *testing.T) {
	p, err := ChoosePool(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[netip.Addr]bool{p.Gateway().V4: true, p.Gateway().V6: true}
	service := netip.PrefixFrom(p.ServiceAddresses(0).V4, 17).Masked()
	for s := Slot(1); s <= MaxSlot; s++ {
		a := p.Addresses(s)
		if seen[a.V4] || seen[a.V6] || !p.V4.Contains(a.V4) || !p.V6.Contains(a.V6) || service.Contains(a.V4) {
			t.Fatalf("slot %d: %v", s, a)
		}
		if b := a.V4.As4(); b[3] == 0 || b[3] == 255 {
			t.Fatalf("slot %d: %v", s, a)
		}
		seen[a.V4], seen[a.V6] = true, true
		if got := p.SlotOf(a.V4); got != s {
			t.Fatalf("%v has slot %d, want %d", a.V4, got, s)
		}
	}
	for _, other := range []string{"10.88.0.1", "10.88.0.0", "10.88.0.255", "10.88.1.1", "10.88.128.1", "10.89.0.2", "fd88::2"} {
		if got := p.SlotOf(netip.MustParseAddr(other)); got != 0 {
			t.Errorf("%s has slot %d, want none", other, got)
		}
	}
	if diff := cmp.Diff([]string{"10.88.0.2", "fd88::2", "10.88.1.2", "fd88::102"},
		[]string{p.Addresses(1).V4.String(), p.Addresses(1).V6.String(), p.Addresses(251).V4.String(), p.Addresses(251).V6.String()}); diff != "" {
		t.Error(diff)
	}
}

func TestFreeSlot(t *testing.T) {
	var p Pool
	for _, c := range []struct {
		preferred Slot
		taken     map[Slot]bool
		want      Slot
	}{
		{5, nil, 5},
		{5, map[Slot]bool{5: true, 6: true}, 7},
		{MaxSlot, map[Slot]bool{MaxSlot: true}, 1},
	} {
		if s, err := p.FreeSlot(c.preferred, func(s Slot) bool { return c.taken[s] }); err != nil || s != c.want {
			t.Errorf("%d of %v: %d, %v", c.preferred, c.taken, s, err)
		}
	}
	if s, err := p.FreeSlot(1, func(Slot) bool { return true }); err == nil {
		t.Errorf("%d is free", s)
	}
	if a, b := PreferredSlot("default/a"), PreferredSlot("default/a"); a != b || a < 1 || a > MaxSlot {
		t.Errorf("%d and %d", a, b)
	}
}

// Pods of a cluster's node have addresses of the node's networks, as many as these have; the rest stays.
func TestNodeNetworks(t *testing.T) {
	p, err := ChoosePool(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		v4, v6      string
		slots       Slot
		first, last string
	}{
		{"10.244.3.0/24", "", 250, "10.244.3.2 fd88::2", "10.244.3.251 fd88::fb"},
		{"10.244.2.0/23", "2001:db8:3::/64", 500, "10.244.2.2 2001:db8:3::2", "10.244.3.251 2001:db8:3::1fb"},
		{"10.244.3.64/26", "", 61, "10.244.3.66 fd88::2", "10.244.3.126 fd88::3e"},
		{"10.32.0.0/11", "", MaxSlot, "10.32.0.2 fd88::2", "10.32.63.251 fd88::3ffb"},
		{"", "2001:db8::/120", 250, "10.88.0.2 2001:db8::2", "10.88.0.251 2001:db8::fb"},
		{"10.1.1.1/32", "", 0, "", ""},
	} {
		node := p
		if c.v4 != "" {
			node.NodeV4 = netip.MustParsePrefix(c.v4)
		}
		if c.v6 != "" {
			node.NodeV6 = netip.MustParsePrefix(c.v6)
		}
		if got := node.Slots(); got != c.slots {
			t.Errorf("%s %s: %d slots, want %d", c.v4, c.v6, got, c.slots)
		}
		if node.Gateway() != p.Gateway() {
			t.Errorf("%s %s: gateway %v", c.v4, c.v6, node.Gateway())
		}
		for s := Slot(1); s <= node.Slots(); s++ {
			a := node.Addresses(s)
			if !node.Contains(a.V4) || !node.Contains(a.V6) || node.SlotOf(a.V4) != s || node.NodeV4.IsValid() && !node.NodeV4.Contains(a.V4) || node.NodeV6.IsValid() && !node.NodeV6.Contains(a.V6) {
				t.Fatalf("%s %s: slot %d: %v", c.v4, c.v6, s, a)
			}
			text := a.V4.String() + " " + a.V6.String()
			if s == 1 && text != c.first || s == node.Slots() && text != c.last {
				t.Errorf("%s %s: slot %d: %s, want %s and %s", c.v4, c.v6, s, text, c.first, c.last)
			}
		}
	}
}
