package netpolicy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
)

// The table has base chains for what pods send, after the rules of Services, and for what they
// receive from others and from the router's own sockets. Each isolated pod has chains with the number
// N of its device in their names:
//
//   - fromN, toN: packets that the pod sends or receives. They determine which side has started the
//     connection, and continue in one of the following chains.
//   - outN, outreplyN: packets of connections from the pod, and their replies.
//   - inN, inreplyN: packets of connections to the pod, and their replies.
//
// The kernel's connection tracking begins with the first policy, if the router has no Services.
// Connections that exist then have a direction that depends on the next packet. So a TCP connection
// is marked when its first packet (SYN) passes, and the direction of unmarked ones follows from the
// ports on which the pod listened when it was isolated: the set "served".

// originKnown is the mark of tracked TCP connections whose first packet passed the rules.
const originKnown = 1

// Registers of nftables: reg overlaps reg32 and the three registers after it.
const (
	reg   = unix.NFT_REG_1
	reg32 = unix.NFT_REG32_00
)

// end is a peer's end or the pod's end of a packet.
type end struct {
	port     uint32 // offset in the header of TCP and UDP
	isSource bool
}

var (
	source      = end{0, true}
	destination = end{2, false}
)

func (e end) offset(f nft.Family) uint32 {
	if e.isSource {
		return f.SourceOffset
	}
	return f.DestinationOffset()
}

// matchAddress matches packets with an address at this end.
func (e end) matchAddress(a netip.Addr) []expr.Any {
	f := familyOf(a)
	return append(f.MatchFamily(), f.MatchAddress(e.offset(f), nft.HostPrefix(a), expr.CmpOpEq)...)
}

// matchPorts matches TCP or UDP packets with a port in a range at this end.
func (e end) matchPorts(r PortRange) []expr.Any {
	return slices.Concat(nft.MatchProtocol(protocols[r.Protocol]), []expr.Any{
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: e.port, Len: 2},
		&expr.Range{Op: expr.CmpOpEq, Register: reg, FromData: binaryutil.BigEndian.PutUint16(r.First), ToData: binaryutil.BigEndian.PutUint16(r.Last)},
	})
}

// matchServed matches packets of a port that the pod of a device served when it was isolated; e is
// the pod's end.
func (e end) matchServed(device expr.MetaKey) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: device, Register: reg32},
		&expr.Payload{DestRegister: reg32 + 1, Base: expr.PayloadBaseTransportHeader, Offset: e.port, Len: 2},
		&expr.Lookup{SourceRegister: reg32, SetName: servedSet},
	}
}

var protocols = map[string]byte{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP}

func familyOf(a netip.Addr) nft.Family {
	if a.Is4() {
		return nft.IPv4
	}
	return nft.IPv6
}

// matchReply matches replies of tracked connections, or packets from the end that has started the
// connection.
func matchReply(reply bool) []expr.Any {
	value := byte(0)
	if reply {
		value = 1
	}
	return []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: reg}, &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: []byte{value}}}
}

// matchRelated matches ICMP errors about tracked connections, and resets by which these rules have
// rejected a packet.
func matchRelated() []expr.Any {
	mask := binaryutil.NativeEndian.PutUint32(expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: reg},
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: make([]byte, 4)},
	}
}

func matchOriginKnown() []expr.Any {
	return []expr.Any{&expr.Ct{Key: expr.CtKeyMARK, Register: reg}, &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: binaryutil.NativeEndian.PutUint32(originKnown)}}
}

// markSYN marks connections whose first packet passes.
func markSYN() []expr.Any {
	return slices.Concat(nft.MatchSYN(), matchReply(false), []expr.Any{
		&expr.Immediate{Register: reg, Data: binaryutil.NativeEndian.PutUint32(originKnown)},
		&expr.Ct{Key: expr.CtKeyMARK, Register: reg, SourceRegister: true},
	})
}

// matchReset matches TCP resets.
func matchReset() []expr.Any {
	return append(nft.MatchProtocol(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 1, Mask: []byte{flagRST}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: []byte{0}})
}

const flagRST = 4 // of a TCP header (RFC 9293)

func goTo(chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}}
}

func accept() []expr.Any { return nft.Verdict(expr.VerdictReturn) }

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	linkScope = netip.MustParsePrefix("fe00::/7") // includes multicast, which neighbour discovery uses
)

// matchNeighbourDiscovery matches the packets that IPv6 needs between the pod and the router.
func matchNeighbourDiscovery() [][]expr.Any {
	icmp := append(nft.IPv6.MatchFamily(), nft.MatchProtocol(unix.IPPROTO_ICMPV6)...)
	return [][]expr.Any{
		slices.Concat(icmp, nft.IPv6.MatchAddress(nft.IPv6.DestinationOffset(), linkScope, expr.CmpOpEq)),
		slices.Concat(icmp, nft.IPv6.MatchAddress(nft.IPv6.SourceOffset, linkLocal, expr.CmpOpEq)),
	}
}

const dnsPort = 53

// addPod adds the chains of a pod; listed reports whether its ports are in the set "served".
func (t *table) addPod(is *Isolation, listed bool) {
	out, outReply, in, inReply := chain("out", is), chain("outreply", is), chain("in", is), chain("inreply", is)
	t.addFilter(out, &is.Egress, destination, destination, nil)
	t.addFilter(outReply, &is.Egress, source, source, nil)
	t.addFilter(in, &is.Ingress, source, destination, nil)
	t.addFilter(inReply, &is.Ingress, destination, source, is.Node)

	from := t.newChain(chain("from", is))
	t.addCommon(from, is, destination)
	for _, a := range is.Node {
		for _, p := range []string{"TCP", "UDP"} {
			t.AddRule(from, destination.matchAddress(a), destination.matchPorts(PortRange{p, dnsPort, dnsPort}), accept())
		}
	}
	t.addOrigin(from, source, listed, out, inReply)

	to := t.newChain(chain("to", is))
	t.addCommon(to, is, source)
	for _, a := range is.Node {
		t.AddRule(to, source.matchAddress(a), nft.MatchOtherMark(nft.UnknownClientMark), accept())
	}
	t.addOrigin(to, destination, listed, in, outReply)
}

func chain(name string, is *Isolation) string { return fmt.Sprintf("%s%d", name, is.Device) }

// addCommon accepts what no policy concerns: errors, neighbour discovery, and the pod's traffic with
// itself through a Service.
func (t *table) addCommon(c *nftables.Chain, is *Isolation, peer end) {
	t.AddRule(c, matchRelated(), accept())
	for _, match := range matchNeighbourDiscovery() {
		t.AddRule(c, match, accept())
	}
	for _, a := range is.Own {
		t.AddRule(c, peer.matchAddress(a), accept())
	}
}

// addOrigin continues in the chain first for packets of the connections that their sender has
// started, and in the chain reply for others. isolated is the pod's end. Until the ports of the pod are
// listed, TCP connections of unknown direction continue.
func (t *table) addOrigin(c *nftables.Chain, isolated end, listed bool, first, reply string) {
	tcp := nft.MatchProtocol(unix.IPPROTO_TCP)
	device, byServed := expr.MetaKeyIIF, [2]string{first, reply} // the pod does not serve the port, or it does
	if !isolated.isSource {
		device, byServed = expr.MetaKeyOIF, [2]string{reply, first}
	}
	t.AddRule(c, nft.MatchSYN(), goTo(first))
	t.AddRule(c, tcp, matchOriginKnown(), matchReply(true), goTo(reply))
	t.AddRule(c, tcp, matchOriginKnown(), goTo(first))
	if listed {
		t.AddRule(c, tcp, isolated.matchServed(device), goTo(byServed[1]))
		t.AddRule(c, tcp, goTo(byServed[0]))
	} else {
		t.AddRule(c, tcp, accept())
	}
	t.AddRule(c, matchReply(true), goTo(reply))
	t.AddRule(c, goTo(first))
}

// addFilter adds a chain that returns for what a filter allows and for some peers, and rejects the rest. peer is the
// peer's end of packets, server the end with the server's port.
func (t *table) addFilter(name string, f *Filter, peer, server end, always []netip.Addr) {
	c := t.newChain(name)
	if !f.Isolated {
		return
	}
	for _, a := range always {
		t.AddRule(c, peer.matchAddress(a), accept())
	}
	for i := range f.Allowed {
		a := &f.Allowed[i]
		for _, from := range t.matchPeers(a, peer) {
			for _, p := range a.Ports {
				t.AddRule(c, from, server.matchPorts(p), accept())
			}
			if len(a.Ports) == 0 {
				t.AddRule(c, from, accept())
			}
		}
	}
	for _, rule := range nft.Reject(nil, unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED) {
		t.AddRule(c, rule)
	}
}

// matchPeers returns a match for each group of an Allow's peers.
func (t *table) matchPeers(a *Allow, peer end) (all [][]expr.Any) {
	if a.Everybody {
		return [][]expr.Any{nil}
	}
	for _, f := range nft.Families {
		if set := t.addressSet(f, a.Addresses); set != nil {
			all = append(all, append(f.MatchFamily(),
				&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: peer.offset(f), Len: f.AddrSize},
				&expr.Lookup{SourceRegister: reg, SetName: set.Name, SetID: set.ID}))
		}
	}
	for _, b := range a.Blocks {
		f := familyOf(b.CIDR.Addr())
		match := append(f.MatchFamily(), matchPrefix(f, peer, b.CIDR, expr.CmpOpEq)...)
		for _, e := range b.Except {
			match = append(match, matchPrefix(f, peer, e, expr.CmpOpNeq)...)
		}
		all = append(all, match)
	}
	return all
}

// matchPrefix is MatchAddress for prefixes that may have no bits.
func matchPrefix(f nft.Family, e end, p netip.Prefix, op expr.CmpOp) []expr.Any {
	if p.Bits() == 0 {
		return nil
	}
	return f.MatchAddress(e.offset(f), p, op)
}

// addressSet returns a set of the addresses of one family; nil if there are none. Equal lists share
// a set.
func (t *table) addressSet(f nft.Family, addresses []netip.Addr) *nftables.Set {
	var elements []nftables.SetElement
	var key []byte
	known := map[netip.Addr]bool{}
	for _, a := range addresses {
		if familyOf(a).Proto == f.Proto && !known[a] {
			known[a] = true
			elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
			key = append(key, a.AsSlice()...)
		}
	}
	if len(elements) == 0 {
		return nil
	}
	if set := t.sets[string(key)]; set != nil {
		return set
	}
	kind := nftables.TypeIPAddr
	if f.Proto == nft.IPv6.Proto {
		kind = nftables.TypeIP6Addr
	}
	set := &nftables.Set{Table: t.Table.Table, Name: fmt.Sprintf("peers%d", len(t.sets)), KeyType: kind}
	t.addSet(set, elements)
	t.sets[string(key)] = set
	return set
}

// servedSet is the set of TCP ports that pods served when they were isolated: the number of the
// pod's device and the port. The port 0 stands for a pod whose ports are in the set, and with earlierMark
// for a pod that existed before the table.
const servedSet = "served"

// earlierMark is in the bytes after the port, which are zero in packets' keys.
const earlierMark = 1

// servedElements encodes a pod's ports.
func servedElements(device int, ports []uint16) []nftables.SetElement {
	var list []nftables.SetElement
	for _, port := range append([]uint16{0}, ports...) {
		list = append(list, servedElement(device, port, 0))
	}
	return list
}

// earlierElement encodes that a pod existed before the table.
func earlierElement(device int) nftables.SetElement { return servedElement(device, 0, earlierMark) }

func servedElement(device int, port uint16, mark byte) nftables.SetElement {
	key := binary.NativeEndian.AppendUint32(nil, uint32(device))
	return nftables.SetElement{Key: append(binary.BigEndian.AppendUint16(key, port), mark, 0)}
}

// servedKind is what an element of servedSet means.
type servedKind int

const (
	servedPort servedKind = iota
	listedPod             // the pod's ports are in the set
	earlierPod            // the pod existed before the table
)

// parseServed returns the device of an element of servedSet, and what the element means.
func parseServed(e nftables.SetElement) (device int, kind servedKind) {
	if len(e.Key) < 8 {
		return 0, servedPort
	}
	device = int(binary.NativeEndian.Uint32(e.Key))
	switch port := binary.BigEndian.Uint16(e.Key[4:]); {
	case e.Key[6] == earlierMark:
		kind = earlierPod
	case port == 0:
		kind = listedPod
	}
	return device, kind
}
