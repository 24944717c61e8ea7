package ipam

import (
	"fmt"
	"hash/fnv"
	"net/netip"
)

// Pool is the range from which the addresses of a user's pods and Services are taken: an IPv4 /16
// and an IPv6 /64. Pods use the lower half of the first 65536 addresses, Services the upper half.
type Pool struct {
	V4, V6 netip.Prefix

	// NodeV4 and NodeV6, where they are valid, are the networks of which pods have their addresses
	// instead: those that a cluster has given to this node.
	NodeV4, NodeV6 netip.Prefix

	// NodeMTU is the largest size of packets to destinations other than pods and Services of this host,
	// in bytes; 0: the MTU of the pods' devices.
	NodeMTU int
}

// Slot is the number of a pod among the pods of its user. Its addresses, its devices, its rules and
// its port in the router are derived from it.
type Slot int

// MaxSlot is the largest slot. The smallest is 1.
const MaxSlot = 16000

// slotsPerBlock leaves out the first and the last addresses of every 256, which old software takes
// for network or broadcast addresses.
const slotsPerBlock = 250

// Addresses is one IPv4 and one IPv6 address.
type Addresses struct{ V4, V6 netip.Addr }

// Addresses returns the addresses of a pod.
func (p Pool) Addresses(s Slot) Addresses {
	n := int(s) - 1
	number := uint16(n/slotsPerBlock)<<8 | uint16(2+n%slotsPerBlock)
	a := p.nth(number)
	if p.NodeV4.IsValid() {
		a.V4 = nthOf(p.NodeV4, number)
	}
	if p.NodeV6.IsValid() {
		a.V6 = nthOf(p.NodeV6, number)
	}
	return a
}

// Slots returns the largest slot whose addresses are in the pool: a node's network may be small.
func (p Pool) Slots() Slot {
	most := Slot(MaxSlot)
	for _, n := range []netip.Prefix{p.NodeV4, p.NodeV6} {
		if bits := n.Addr().BitLen() - n.Bits(); n.IsValid() && bits < 16 {
			most = min(most, max(slotsIn(bits), 0))
		}
	}
	return most
}

// slotsIn returns the number of slots of a network whose addresses end in so many bits.
func slotsIn(bits int) Slot {
	if bits < 8 {
		return Slot(1<<bits - 3) // without the first two and the last one
	}
	return Slot(slotsPerBlock << (bits - 8))
}

// Prefixes returns the networks of all addresses of pods and Services.
func (p Pool) Prefixes() []netip.Prefix {
	all := []netip.Prefix{p.V4, p.V6}
	for _, n := range []netip.Prefix{p.NodeV4, p.NodeV6} {
		if n.IsValid() {
			all = append(all, n)
		}
	}
	return all
}

// HasNode reports whether pods have addresses of a cluster's node.
func (p Pool) HasNode() bool { return p.NodeV4.IsValid() || p.NodeV6.IsValid() }

// Contains reports whether an address is one of the pool.
func (p Pool) Contains(a netip.Addr) bool {
	return p.V4.Contains(a) || p.V6.Contains(a) || p.NodeV4.Contains(a) || p.NodeV6.Contains(a)
}

// Gateway returns the router's own addresses.
func (p Pool) Gateway() Addresses { return p.nth(1) }

// ServiceAddresses returns the addresses of Service n, from 0 to 1<<15-3.
func (p Pool) ServiceAddresses(n int) Addresses { return p.nth(uint16(1<<15 + 1 + n)) }

// ServiceRanges returns all addresses that Services may have, one prefix for each family. The first
// address of a range is never assigned.
func (p Pool) ServiceRanges() []netip.Prefix {
	half := p.nth(1 << 15)
	return []netip.Prefix{netip.PrefixFrom(half.V4, 17), netip.PrefixFrom(half.V6, 113)}
}

func (p Pool) nth(n uint16) Addresses { return Addresses{nthOf(p.V4, n), nthOf(p.V6, n)} }

// nthOf returns the network's nth address.
func nthOf(p netip.Prefix, n uint16) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	b[len(b)-2] |= byte(n >> 8)
	b[len(b)-1] |= byte(n)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// HostLoopback are the addresses through which a pod with permission reaches servers on the host's
// loopback. They belong to no pod and to no existing network.
var HostLoopback = Addresses{netip.AddrFrom4([4]byte{169, 254, 1, 2}), netip.MustParseAddr("fd88:0:0:ffff::2")}

// PreferredSlot returns the slot at which the search for a free slot begins: a pod of the same name
// gets its previous addresses unless another pod has taken them.
func PreferredSlot(name string) Slot {
	h := fnv.New32a()
	h.Write([]byte(name))
	return Slot(h.Sum32()%MaxSlot) + 1
}

// FreeSlot returns the first free slot, starting at a preferred one.
func (p Pool) FreeSlot(preferred Slot, taken func(Slot) bool) (Slot, error) {
	all := p.Slots()
	for i := range all {
		if s := (preferred-1+i)%all + 1; !taken(s) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("find an address for the pod: all %d are taken", all)
}

// maxBroadBits is the maximum length of prefixes that stand for "everything", such as
// VPNs'.
const maxBroadBits = 4

// ChoosePool returns the first pool that does not overlap the networks that the host reaches.
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

// candidates4 are rarely used networks from all three private ranges.
var candidates4 = [][4]byte{
	{10, 88}, {10, 89}, {10, 107}, {10, 137}, {10, 173}, {10, 211}, {10, 239},
	{172, 22}, {172, 25}, {172, 28}, {172, 30}, {192, 168}, {100, 88}, {100, 121}, {198, 18},
}

// SlotOf returns the slot of a pod's IPv4 address; 0 if the address is not one of a pod of the
// pool.
func (p Pool) SlotOf(a netip.Addr) Slot {
	of := p.V4
	if p.NodeV4.IsValid() {
		of = p.NodeV4
	}
	if !a.Is4() || !of.Contains(a) {
		return 0
	}
	b, first := a.As4(), of.Masked().Addr().As4()
	s := Slot(int(b[2]-first[2])*slotsPerBlock + int(b[3]-first[3]) - 1)
	if s < 1 || s > MaxSlot || p.Addresses(s).V4 != a {
		return 0
	}
	return s
}
