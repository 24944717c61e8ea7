package netns

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Parts of nftables rules.

// ipFamily is what differs between IPv4 and IPv6.
type ipFamily struct {
	number   byte
	source   uint32 // offset in the header
	size     uint32 // of an address
	icmp     byte
	errors   [][2]byte // types of ICMP, from and to, that quote a packet
	loopback netip.Addr
}

var (
	v4 = ipFamily{unix.NFPROTO_IPV4, 12, 4, unix.IPPROTO_ICMP,
		[][2]byte{{3, 3}, {11, 12}}, netip.AddrFrom4([4]byte{127, 0, 0, 1})} // RFC 792
	v6 = ipFamily{unix.NFPROTO_IPV6, 8, 16, unix.IPPROTO_ICMPV6,
		[][2]byte{{0, 127}}, netip.IPv6Loopback()} // RFC 4443: unknown ones are errors, too
	families = []ipFamily{v4, v6}
)

func (f ipFamily) of(a Addresses) netip.Addr {
	if f.size == 4 {
		return a.V4
	}
	return a.V6
}

func (f ipFamily) pool(p Pool) netip.Prefix {
	if f.size == 4 {
		return p.V4
	}
	return p.V6
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func (f ipFamily) only() []expr.Any { return metaIs(expr.MetaKeyNFPROTO, []byte{f.number}) }

// from matches packets whose source is, or is not, in a prefix. The family is known.
func (f ipFamily) from(p netip.Prefix, op expr.CmpOp) []expr.Any { return f.address(f.source, p, op) }

// to matches packets of the family for a prefix.
func (f ipFamily) to(p netip.Prefix) []expr.Any {
	return append(f.only(), f.address(f.source+f.size, p, expr.CmpOpEq)...)
}

// address compares one of a packet's with a prefix: of whole bytes only those are loaded.
func (f ipFamily) address(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	bytes := uint32(p.Bits()+7) / 8
	parts := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: bytes}}
	if rest := p.Bits() % 8; rest != 0 {
		mask := slices.Repeat([]byte{0xff}, int(bytes))
		mask[bytes-1] = 0xff << (8 - rest)
		parts = append(parts, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: bytes, Mask: mask, Xor: make([]byte, bytes)})
	}
	return append(parts, &expr.Cmp{Op: op, Register: 1, Data: p.Masked().Addr().AsSlice()[:bytes]})
}

// otherThan matches packets that are not for an address. The family is known.
func (f ipFamily) otherThan(a netip.Addr) []expr.Any {
	return f.address(f.source+f.size, host(a), expr.CmpOpNeq)
}

// nobody is a port to which nobody in the router listens.
const nobody = 1

// ongoing gives a packet to the socket with its own addresses, if there is one. The kernel
// looks for it once, here, where to match it first (nft_socket) it looks again after that.
// nft_socket looks into errors of ICMP, too, for whose packet they quote; this does not:
// there is ownErrors for it.
func (f ipFamily) ongoing() []expr.Any { return f.take(nobody) }

// take gives a packet to the socket that listens to the port on the router's loopback.
func (f ipFamily) take(port uint16) []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Immediate{Register: 2, Data: f.loopback.AsSlice()},
		&expr.TProxy{Family: f.number, TableFamily: unix.NFPROTO_INET, RegPort: 1, RegAddr: 2},
	}, deliver()...)
}

// deliver has a packet delivered here, whatever its destination.
func deliver() []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(localMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}, verdict(expr.VerdictAccept)...)
}

// firstPacket matches the first packet of a TCP connection, notFirst all others.
func firstPacket() []expr.Any { return flags(expr.CmpOpEq) }
func notFirst() []expr.Any    { return flags(expr.CmpOpNeq) }

func flags(op expr.CmpOp) []expr.Any {
	return append(protocol(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{flagFIN | flagSYN | flagRST | flagACK}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: 1, Data: []byte{flagSYN}},
	)
}

// flags of a TCP header (RFC 9293).
const (
	flagFIN, flagSYN, flagRST, flagACK = 1, 2, 4, 16
)

// domain is the port of the pods' resolver, at the gateway (RFC 1035).
const domain = 53

func destinationPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

func protocol(p byte) []expr.Any { return metaIs(expr.MetaKeyL4PROTO, []byte{p}) }

// icmpErrors match errors of ICMP, each some types of them. The family is known.
func (f ipFamily) icmpErrors() (all [][]expr.Any) {
	for _, types := range f.errors {
		all = append(all, append(protocol(f.icmp),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
			&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: types[:1], ToData: types[1:]}))
	}
	return all
}

// quotesTo matches errors of ICMP that quote a packet for an address.
func (f ipFamily) quotesTo(a netip.Addr) []expr.Any {
	const icmpHeader = 8
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: icmpHeader + f.source + f.size, Len: f.size},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: a.AsSlice()},
	}
}

// quotesOurs matches errors of ICMP that quote what a socket here has sent in the name of others.
func quotesOurs() []expr.Any {
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyTransparent, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
	}
}

func otherProtocol(p byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{p}}}
}

func iif(index int) []expr.Any {
	return metaIs(expr.MetaKeyIIF, binaryutil.NativeEndian.PutUint32(uint32(index)))
}

func notIif(index int) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIF, Register: 1}, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(uint32(index))}}
}

// otherSlot matches what comes by devices whose numbers do not end as those of a slot.
func otherSlot(s Slot) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIF, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(firstPod - 1), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(uint32(s))},
	}
}

func metaIs(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value}}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }
