package ipam

import (
	"fmt"
	"hash/fnv"
	"net/netip"
)

// Pool is where the addresses of a user's pods and Services come from: an IPv4 /16 and an
// IPv6 /64, of which pods have the lower half of the first 65536 addresses, Services the
// upper.
type Pool struct{ V4, V6 netip.Prefix }

// Slot is the number of a pod among those of its user. Its addresses, its devices, its
// rules and its port in the router are named by it.
type Slot int

// MaxSlot is how many there are, from 1.
const MaxSlot = 16000

// slotsPerBlock leaves the first and the last addresses of every 256 alone, which old software
// takes for those of a network.
const slotsPerBlock = 250

// Addresses are one IPv4 and one IPv6 address.
type Addresses struct{ V4, V6 netip.Addr }

// Addresses are the addresses of a pod.
func (p Pool) Addresses(s Slot) Addresses {
	n := int(s) - 1
	return p.nth(uint16(n/slotsPerBlock)<<8 | uint16(2+n%slotsPerBlock))
}

// Gateway are the router's own addresses.
func (p Pool) Gateway() Addresses { return p.nth(1) }

// ServiceAddresses are the addresses of Service n, from 0 to 1<<15-3.
func (p Pool) ServiceAddresses(n int) Addresses { return p.nth(uint16(1<<15 + 1 + n)) }

// ServiceRanges are all addresses that Services may have, of each family; the first of a
// range is nobody's.
func (p Pool) ServiceRanges() []netip.Prefix {
	half := p.nth(1 << 15)
	return []netip.Prefix{netip.PrefixFrom(half.V4, 17), netip.PrefixFrom(half.V6, 113)}
}

func (p Pool) nth(n uint16) Addresses {
	a4, a6 := p.V4.Addr().As4(), p.V6.Addr().As16()
	a4[2], a4[3] = byte(n>>8), byte(n)
	a6[14], a6[15] = byte(n>>8), byte(n)
	return Addresses{netip.AddrFrom4(a4), netip.AddrFrom16(a6)}
}

// HostLoopback are the addresses by which a pod that is allowed to reaches what listens on
// the host's loopback: no pod's, and of no network there is.
var HostLoopback = Addresses{netip.AddrFrom4([4]byte{169, 254, 1, 2}), netip.MustParseAddr("fd88:0:0:ffff::2")}

// PreferredSlot is where to begin to look for a free slot for a pod: a pod of the same name
// finds its old addresses, if nobody else has got them.
func PreferredSlot(name string) Slot {
	h := fnv.New32a()
	h.Write([]byte(name))
	return Slot(h.Sum32()%MaxSlot) + 1
}

// FreeSlot is the first free slot from a preferred one on.
func FreeSlot(preferred Slot, taken map[Slot]bool) (Slot, error) {
	for i := range MaxSlot {
		if s := (preferred-1+Slot(i))%MaxSlot + 1; !taken[s] {
			return s, nil
		}
	}
	return 0, fmt.Errorf("find an address for the pod: all %d are taken", MaxSlot)
}

// maxBroadBits is the length of prefixes that stand for "everything", as VPNs have them.
const maxBroadBits = 4

// ChoosePool is the first pool that shares no address with the networks that the host
// reaches.
func ChoosePool(networks []netip.Prefix) (Pool, error) {
	free := func(p netip.Prefix) bool {
		for _, n := range networks {
			if n.Bits() > maxBroadBits && n.Overlaps(p) {
				return false
			}
		}
		return true
	}
	var pool Pool
	for i := 0; i < len(candidates4) && !pool.V4.IsValid(); i++ {
		if p := netip.PrefixFrom(netip.AddrFrom4(candidates4[i]), 16); free(p) {
			pool.V4 = p
		}
	}
	for b := byte(0x88); b < 0xc8 && !pool.V6.IsValid(); b++ {
		if p := netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, b}), 64); free(p) {
			pool.V6 = p
		}
	}
	if !pool.V4.IsValid() || !pool.V6.IsValid() {
		return Pool{}, fmt.Errorf("find addresses for pods: the host has routes to all networks that they could have")
	}
	return pool, nil
}

// candidates4 are networks that are rarely used, from all three private ranges.
var candidates4 = [][4]byte{
	{10, 88}, {10, 89}, {10, 107}, {10, 137}, {10, 173}, {10, 211}, {10, 239},
	{172, 22}, {172, 25}, {172, 28}, {172, 30}, {192, 168}, {100, 88}, {100, 121}, {198, 18},
}
