package services

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
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
	nft.Family
	after   uint32 // register after an address in the first
	address nftables.SetDatatype
}

var (
	v4 = family{nft.IPv4, regAfter4, nftables.TypeIPAddr}
	v6 = family{nft.IPv6, regAfter6, nftables.TypeIP6Addr}
)

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return v4
	}
	return v6
}

var protocols = map[string]byte{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP}

func (f family) load(offset, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: f.AddrSize}
}

// toPort matches packets to one port of a Service.
func (r route) toPort() []expr.Any {
	return slices.Concat(familyOf(r.from.Addr()).MatchDestination(nft.HostPrefix(r.from.Addr())),
		nft.MatchProtocol(protocols[r.protocol]), nft.MatchDestinationPort(r.from.Port()))
}

// affinitySlots is the number of parts that clients with affinity are divided into.
const affinitySlots = 61

// maxClients is the number of clients whose slots the table has. Others have no affinity.
const maxClients = 65536

// clientSet returns the map from Services and their clients to affinity slots. It keeps its elements when the table is
// replaced.
func (f family) clientSet(t *nftables.Table) *nftables.Set {
	return &nftables.Set{Table: t, Name: map[bool]string{true: "clients4", false: "clients6"}[f.AddrSize == v4.AddrSize], IsMap: true, Concatenation: true,
		HasTimeout: true, Dynamic: true, Size: maxClients, KeyType: nftables.MustConcatSetType(f.address, f.address), DataType: nftables.TypeInteger}
}

// slot is the register after a key of clientSet in the first.
func (f family) slot() uint32 { return 2*f.after - unix.NFT_REG32_00 }

// loadClient loads the destination and the source of a packet as a key of clientSet.
func (f family) loadClient() []expr.Any {
	return []expr.Any{f.load(f.DestinationOffset(), reg), f.load(f.SourceOffset, f.after)}
}

// recordClient records a slot for a client that the set does not have.
func (r route) recordClient(clients *nftables.Set) []expr.Any {
	f := familyOf(r.from.Addr())
	return append(f.loadClient(), &expr.Numgen{Register: f.slot(), Modulus: affinitySlots, Type: unix.NFT_NG_RANDOM}, r.updateClient(clients, unix.NFT_DYNSET_OP_ADD))
}

// lookupClient loads the slot of a client, which it keeps for the time of the affinity from now.
func (r route) lookupClient(clients *nftables.Set) []expr.Any {
	f := familyOf(r.from.Addr())
	return append(f.loadClient(), &expr.Lookup{SourceRegister: reg, DestRegister: f.slot(), IsDestRegSet: true, SetName: clients.Name, SetID: clients.ID},
		r.updateClient(clients, unix.NFT_DYNSET_OP_UPDATE))
}

func (r route) updateClient(clients *nftables.Set, operation uint32) expr.Any {
	return &expr.Dynset{SrcRegKey: reg, SrcRegData: familyOf(r.from.Addr()).slot(), SetName: clients.Name, SetID: clients.ID, Operation: operation, Timeout: r.affinity}
}

// singleEndpoints puts the routes with a single endpoint, the usual case on one machine, into one
// map for each family, keyed by address, protocol and port.
func (f family) singleEndpoints(t *nftables.Table, routes []route) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Name: map[bool]string{true: "single4", false: "single6"}[f.AddrSize == v4.AddrSize], IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(f.address, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: nftables.MustConcatSetType(f.address, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for _, r := range routes {
		if len(r.to) == 1 && !r.outside && f.has(r.from.Addr()) {
			elements = append(elements, nftables.SetElement{Key: r.key(), Val: value(r.to[0])})
		}
	}
	return set, elements
}

// has reports whether an address is of the family.
func (f family) has(a netip.Addr) bool { return a.Is4() == (f.AddrSize == v4.AddrSize) }

// key encodes the route's address, protocol and port as the key of a set.
func (r route) key() []byte {
	key := append(r.from.Addr().AsSlice(), protocols[r.protocol], 0, 0, 0)
	return append(append(key, binaryutil.BigEndian.PutUint16(r.from.Port())...), 0, 0)
}

// loadKey loads the destination of a packet as a key of a set.
func (f family) loadKey() []expr.Any {
	return append(f.MatchFamily(), f.load(f.DestinationOffset(), reg),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: f.after},
		&expr.Payload{DestRegister: f.after + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
}

// foreignSet returns the addresses of Services that are in none of the ranges.
func (f family) foreignSet(t *nftables.Table, ranges []netip.Prefix, routes []route) (*nftables.Set, []nftables.SetElement) {
	var foreign []netip.Addr
	for _, r := range routes {
		a := r.from.Addr()
		if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
			foreign = append(foreign, a)
		}
	}
	return f.addressSet(t, "foreign", foreign)
}

// addressSet returns a set of the addresses that belong to the family. Its name is prefix with the number of the
// family.
func (f family) addressSet(t *nftables.Table, prefix string, addresses []netip.Addr) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Name: prefix + map[bool]string{true: "4", false: "6"}[f.AddrSize == v4.AddrSize], KeyType: f.address}
	var elements []nftables.SetElement
	added := map[netip.Addr]bool{}
	for _, a := range addresses {
		if f.has(a) && !added[a] {
			added[a] = true
			elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
		}
	}
	return set, elements
}

// visitorSet returns the set of the visitors.
func (f family) visitorSet(t *table) (*nftables.Set, []nftables.SetElement) {
	return f.addressSet(t.Table.Table, "visitors", t.visitors)
}

// matchStrangers matches packets to an address in a set whose source is not in another set.
func (f family) matchStrangers(to, visitors *nftables.Set) []expr.Any {
	return append(f.MatchFamily(), f.load(f.DestinationOffset(), reg), &expr.Lookup{SourceRegister: reg, SetName: to.Name, SetID: to.ID},
		f.load(f.SourceOffset, reg), &expr.Lookup{SourceRegister: reg, SetName: visitors.Name, SetID: visitors.ID, Invert: true})
}

// matchForeign matches packets to what is in the set of foreignSet.
func (f family) matchForeign(set *nftables.Set) []expr.Any {
	return append(f.MatchFamily(), f.load(f.DestinationOffset(), reg), &expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
}

// outsideSet returns the addresses and ports of Services with endpoints outside the pods' network.
func (f family) outsideSet(t *nftables.Table, routes []route) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Name: map[bool]string{true: "outside4", false: "outside6"}[f.AddrSize == v4.AddrSize], Concatenation: true,
		KeyType: nftables.MustConcatSetType(f.address, nftables.TypeInetProto, nftables.TypeInetService)}
	var elements []nftables.SetElement
	for _, r := range routes {
		if r.outside && f.has(r.from.Addr()) {
			elements = append(elements, nftables.SetElement{Key: r.key()})
		}
	}
	return set, elements
}

// matchOutside matches packets to what is in the set of outsideSet.
func (f family) matchOutside(set *nftables.Set) []expr.Any {
	return append(f.loadKey(), &expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
}

// lookupSingle looks a packet up in the map of singleEndpoints and redirects it.
func (f family) lookupSingle(set *nftables.Set) []expr.Any {
	return append(f.loadKey(), &expr.Lookup{SourceRegister: reg, DestRegister: reg, IsDestRegSet: true, SetName: set.Name, SetID: set.ID}, f.dnat())
}

// value encodes an endpoint as an element of a map.
func value(to netip.AddrPort) []byte {
	return append(append(to.Addr().AsSlice(), binaryutil.BigEndian.PutUint16(to.Port())...), 0, 0)
}

// dnat redirects a connection to the endpoint in the first register.
func (f family) dnat() expr.Any {
	return &expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.Proto), RegAddrMin: reg, RegProtoMin: f.after, Specified: true}
}

// bySlot returns the endpoint for each affinity slot; empty if there are no endpoints. Only those clients move whose pod
// has gone, and those that a new pod takes over (rendezvous hashing).
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

// pickInTurn gives a connection one of n numbers.
func pickInTurn(n int) []expr.Any {
	return []expr.Any{&expr.Numgen{Register: reg, Modulus: uint32(n), Type: unix.NFT_NG_INCREMENTAL}}
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

// dnatByNumber redirects a connection to the endpoint whose number is in a register.
func (r route) dnatByNumber(register uint32, targets *nftables.Set) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: register, DestRegister: reg, IsDestRegSet: true, SetName: targets.Name, SetID: targets.ID},
		familyOf(r.from.Addr()).dnat(),
	}
}

// dropRedirects drops ICMP redirects of a router, which advise asking a neighbour directly: the
// answer would not come back through the router.
func dropRedirects() [][]expr.Any {
	var rules [][]expr.Any
	for kind, number := range map[byte]byte{unix.IPPROTO_ICMP: 5, unix.IPPROTO_ICMPV6: 137} {
		rules = append(rules, append(nft.MatchProtocol(kind),
			&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: []byte{number}}, &expr.Verdict{Kind: expr.VerdictDrop}))
	}
	return rules
}

// matchHairpin matches packets that pods have sent to themselves through a Service: a pod does not
// accept packets from its own address.
func (f family) matchHairpin(set *nftables.Set) []expr.Any {
	return append(f.MatchFamily(), f.load(f.SourceOffset, reg), f.load(f.DestinationOffset(), f.after),
		&expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID})
}

// hairpinSet returns the endpoints' addresses of one family, each as a pair with itself.
func hairpinSet(t *nftables.Table, f family, routes []route) (*nftables.Set, []nftables.SetElement) {
	set := &nftables.Set{Table: t, Anonymous: true, Constant: true, Concatenation: true,
		KeyType: nftables.MustConcatSetType(f.address, f.address)}
	var elements []nftables.SetElement
	addresses := map[netip.Addr]bool{}
	for _, r := range routes {
		for _, e := range r.to {
			if a := e.Addr(); !r.outside && familyOf(a).Proto == f.Proto && !addresses[a] {
				addresses[a] = true
				elements = append(elements, nftables.SetElement{Key: append(a.AsSlice(), a.AsSlice()...)})
			}
		}
	}
	return set, elements
}
