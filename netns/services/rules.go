package services

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers of nftables: the first has 16 bytes and overlaps the first four registers of 4 bytes
// each.
const (
	reg       = unix.NFT_REG_1
	regAfter4 = unix.NFT_REG32_01 // after an IPv4 address in the first; more registers of 4 bytes follow
	regAfter6 = unix.NFT_REG32_04 // after an IPv6 address in the first; more registers of 4 bytes follow
)

// family contains the differences between the rules of IPv4 and IPv6.
type family struct {
	proto      byte
	size       uint32 // of an address
	source, to uint32 // their offsets in a packet
	after      uint32 // register after an address in the first
	address    nftables.SetDatatype
}

var (
	v4 = family{unix.NFPROTO_IPV4, 4, 12, 16, regAfter4, nftables.TypeIPAddr}
	v6 = family{unix.NFPROTO_IPV6, 16, 8, 24, regAfter6, nftables.TypeIP6Addr}
)

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return v4
	}
	return v6
}

var protocols = map[string]byte{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP}

func equals(b ...byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: b}
}

func (f family) is() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg}, equals(f.proto)}
}

func protocol(p byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg}, equals(p)}
}

func (f family) load(offset, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.size}
}

// toPrefix matches packets to a range of addresses.
func (f family) toPrefix(p netip.Prefix) []expr.Any {
	mask := make([]byte, f.size)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return append(f.is(), f.load(f.to, reg),
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: f.size, Mask: mask, Xor: make([]byte, f.size)},
		equals(p.Masked().Addr().AsSlice()...))
}

// toPort matches packets to one port of a Service.
func (r route) toPort() []expr.Any {
	f := familyOf(r.from.Addr())
	match := append(f.is(), f.load(f.to, reg), equals(r.from.Addr().AsSlice()...))
	match = append(match, protocol(protocols[r.protocol])...)
	return append(match,
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(r.from.Port())...))
}

// affinitySlots is the number of parts that clients with affinity are divided into; the seed makes
// their hash differ from other hashes.
const (
	affinitySlots = 61
	affinitySeed  = 1
)

// singleEndpoints puts the routes with a single endpoint, the usual case on one machine, into one
// map for each family, keyed by address, protocol and port.
func (f family) singleEndpoints(t *nftables.Table, routes []route) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Name: map[bool]string{true: "alone4", false: "alone6"}[f.size == v4.size], IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(f.address, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: nftables.MustConcatSetType(f.address, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for _, r := range routes {
		if len(r.to) == 1 && r.from.Addr().Is4() == (f.size == v4.size) {
			key := append(r.from.Addr().AsSlice(), protocols[r.protocol], 0, 0, 0)
			key = append(append(key, binaryutil.BigEndian.PutUint16(r.from.Port())...), 0, 0)
			elements = append(elements, nftables.SetElement{Key: key, Val: value(r.to[0])})
		}
	}
	return set, elements
}

// lookupSingle looks a packet up in the map of singleEndpoints and redirects it.
func (f family) lookupSingle(set *nftables.Set) []expr.Any {
	return append(f.is(), f.load(f.to, reg),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: f.after},
		&expr.Payload{DestRegister: f.after + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: reg, DestRegister: reg, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		f.dnat())
}

// value encodes an endpoint as an element of a map.
func value(to netip.AddrPort) []byte {
	return append(append(to.Addr().AsSlice(), binaryutil.BigEndian.PutUint16(to.Port())...), 0, 0)
}

// dnat redirects a connection to the endpoint in the first register.
func (f family) dnat() expr.Any {
	return &expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg, RegProtoMin: f.after, Specified: true}
}

// slots returns the endpoint for each number that a connection can get: each in turn, or, with
// affinity, by the client's address, so that only those clients move whose pod has gone, and those
// that a new pod takes over (rendezvous hashing).
func (r route) slots() []netip.AddrPort {
	if r.affinity == 0 {
		return r.to
	}
	return bySlot(r.to)
}

// bySlot returns the endpoint for each affinity slot; empty if there are no endpoints.
func bySlot(to []netip.AddrPort) []netip.AddrPort {
	if len(to) == 0 {
		return nil
	}
	list := make([]netip.AddrPort, affinitySlots)
	for i := range list {
		list[i] = slices.MaxFunc(to, func(a, b netip.AddrPort) int {
			wa, wb := weight(i, a.Addr()), weight(i, b.Addr())
			switch {
			case wa < wb:
				return -1
			case wa > wb:
				return 1
			}
			return a.Compare(b)
		})
	}
	return list
}

// weight does not depend on the port: a client reaches the same pod on all ports.
func weight(slot int, a netip.Addr) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(slot)})
	h.Write(a.AsSlice())
	h.Write([]byte{byte(slot)})
	return h.Sum64()
}

// pickSlot gives a connection one of n numbers.
func (r route) pickSlot(n int) []expr.Any {
	f := familyOf(r.from.Addr())
	if r.affinity == 0 {
		return []expr.Any{&expr.Numgen{Register: reg, Modulus: uint32(n), Type: unix.NFT_NG_INCREMENTAL}}
	}
	return []expr.Any{f.load(f.source, reg),
		&expr.Hash{SourceRegister: reg, DestRegister: reg, Length: f.size, Modulus: uint32(n), Seed: affinitySeed, Type: expr.HashTypeJenkins}}
}

// targets returns the map from numbers to endpoints.
func (r route) targets(t *nftables.Table, places []netip.AddrPort) (*nftables.Set, []nftables.SetElement) {
	f := familyOf(r.from.Addr())
	set := &nftables.Set{Table: t, Anonymous: true, Constant: true, IsMap: true,
		KeyType: nftables.TypeInteger, DataType: nftables.MustConcatSetType(f.address, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for i, to := range places {
		elements = append(elements, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(i)), Val: value(to)})
	}
	return set, elements
}

// dnatBySlot redirects a connection to the endpoint whose number is in the first register.
func (r route) dnatBySlot(targets *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: reg, DestRegister: reg, IsDestRegSet: true, SetName: targets.Name, SetID: targets.ID},
		familyOf(r.from.Addr()).dnat(),
	}
}

// reject answers as a host does on a port without a listener.
func reject(match []expr.Any) [][]expr.Any {
	tcp := append(slices.Clone(match), protocol(unix.IPPROTO_TCP)...)
	return [][]expr.Any{
		append(tcp, &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}),
		append(slices.Clone(match), &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}),
	}
}

// dropRedirects matches ICMP redirects of a router, which advise asking a neighbour directly: the
// answer would not come back through the router.
func dropRedirects() [][]expr.Any {
	var rules [][]expr.Any
	for kind, number := range map[byte]byte{unix.IPPROTO_ICMP: 5, unix.IPPROTO_ICMPV6: 137} {
		rules = append(rules, append(protocol(kind),
			&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
			equals(number), &expr.Verdict{Kind: expr.VerdictDrop}))
	}
	return rules
}

// matchHairpin matches packets that pods have sent to themselves through a Service: a pod does not
// accept packets from its own address.
func (f family) matchHairpin(set *nftables.Set) []expr.Any {
	return append(f.is(), f.load(f.source, reg), f.load(f.to, f.after),
		&expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
}

// snat replaces the source of packets, so that the answers pass the router.
func (f family) snat(a netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: reg, Data: a.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: uint32(f.proto), RegAddrMin: reg},
	}
}

// hairpinSet returns the endpoints' addresses of one family, each as a pair with itself.
func hairpinSet(t *nftables.Table, f family, routes []route) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Anonymous: true, Constant: true, Concatenation: true,
		KeyType: nftables.MustConcatSetType(f.address, f.address)}
	var elements []nftables.SetElement
	seen := map[netip.Addr]bool{}
	for _, r := range routes {
		for _, e := range r.to {
			if a := e.Addr(); familyOf(a).proto == f.proto && !seen[a] {
				seen[a] = true
				elements = append(elements, nftables.SetElement{Key: append(a.AsSlice(), a.AsSlice()...)})
			}
		}
	}
	return set, elements
}
