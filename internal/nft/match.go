package nft

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The following are parts of nftables rules.

// Family holds the differences between IPv4 and IPv6.
type Family struct {
	Proto          byte
	SourceOffset   uint32 // offset in the header
	AddrSize       uint32 // of an address
	ICMPProto      byte
	icmpErrorTypes [][2]byte // types of ICMP, from and to, that quote a packet
	Loopback       netip.Addr
}

var (
	IPv4 = Family{unix.NFPROTO_IPV4, 12, 4, unix.IPPROTO_ICMP,
		[][2]byte{{3, 3}, {11, 12}}, netip.AddrFrom4([4]byte{127, 0, 0, 1})} // RFC 792
	IPv6 = Family{unix.NFPROTO_IPV6, 8, 16, unix.IPPROTO_ICMPV6,
		[][2]byte{{0, 127}}, netip.IPv6Loopback()} // RFC 4443: unknown ones are errors, too
	Families = []Family{IPv4, IPv6}
)

// HostPrefix is the prefix of one address.
func HostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// DestinationOffset is the offset of the destination in the header.
func (f Family) DestinationOffset() uint32 { return f.SourceOffset + f.AddrSize }

// MatchFamily matches packets of the family.
func (f Family) MatchFamily() []expr.Any {
	return matchMeta(expr.MetaKeyNFPROTO, expr.CmpOpEq, []byte{f.Proto})
}

// MatchSource matches packets whose source is, or is not, in a prefix. The family must be known.
func (f Family) MatchSource(p netip.Prefix, op expr.CmpOp) []expr.Any {
	return f.MatchAddress(f.SourceOffset, p, op)
}

// MatchDestination matches packets of the family for a prefix.
func (f Family) MatchDestination(p netip.Prefix) []expr.Any {
	return append(f.MatchFamily(), f.MatchAddress(f.DestinationOffset(), p, expr.CmpOpEq)...)
}

// MatchAddress compares an address of a packet with a prefix. For a prefix of whole bytes it loads
// only these.
func (f Family) MatchAddress(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	bytes := uint32(p.Bits()+7) / 8
	parts := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: bytes}}
	if rest := p.Bits() % 8; rest != 0 {
		mask := slices.Repeat([]byte{0xff}, int(bytes))
		mask[bytes-1] = 0xff << (8 - rest)
		parts = append(parts, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: bytes, Mask: mask, Xor: make([]byte, bytes)})
	}
	return append(parts, &expr.Cmp{Op: op, Register: 1, Data: p.Masked().Addr().AsSlice()[:bytes]})
}

// MatchOtherDestination matches packets that are not for an address. The family must be known.
func (f Family) MatchOtherDestination(a netip.Addr) []expr.Any {
	return f.MatchAddress(f.DestinationOffset(), HostPrefix(a), expr.CmpOpNeq)
}

// MatchSYN matches the first packet of a TCP connection.
func MatchSYN() []expr.Any { return matchTCPFlags(expr.CmpOpEq) }

// MatchNotSYN matches TCP packets other than the first of a connection.
func MatchNotSYN() []expr.Any { return matchTCPFlags(expr.CmpOpNeq) }

func matchTCPFlags(op expr.CmpOp) []expr.Any {
	return append(MatchProtocol(unix.IPPROTO_TCP),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{flagFIN | flagSYN | flagRST | flagACK}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: 1, Data: []byte{flagSYN}},
	)
}

// flags of a TCP header (RFC 9293).
const (
	flagFIN, flagSYN, flagRST, flagACK = 1, 2, 4, 16
)

// MatchDestinationPort matches TCP or UDP packets for a port. The protocol must be known.
func MatchDestinationPort(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

// MatchProtocol matches packets of a transport protocol.
func MatchProtocol(p byte) []expr.Any { return matchMeta(expr.MetaKeyL4PROTO, expr.CmpOpEq, []byte{p}) }

// MatchICMPErrors matches ICMP errors; each element matches some types of them. The family must be
// known.
func (f Family) MatchICMPErrors() (all [][]expr.Any) {
	for _, types := range f.icmpErrorTypes {
		all = append(all, append(MatchProtocol(f.ICMPProto),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
			&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: types[:1], ToData: types[1:]}))
	}
	return all
}

// MatchQuotedDestination matches ICMP errors that quote a packet for an address.
func (f Family) MatchQuotedDestination(a netip.Addr) []expr.Any {
	const icmpHeader = 8
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: icmpHeader + f.DestinationOffset(), Len: f.AddrSize},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: a.AsSlice()},
	}
}

// MatchQuotedTransparent matches ICMP errors that quote a packet of a transparent socket on this
// host.
func MatchQuotedTransparent() []expr.Any {
	return []expr.Any{
		&expr.Socket{Key: expr.SocketKeyTransparent, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
	}
}

// MatchOtherProtocol matches packets of any other transport protocol.
func MatchOtherProtocol(p byte) []expr.Any {
	return matchMeta(expr.MetaKeyL4PROTO, expr.CmpOpNeq, []byte{p})
}

// MatchInputIndex matches packets that arrive by a link.
func MatchInputIndex(index int) []expr.Any {
	return matchMeta(expr.MetaKeyIIF, expr.CmpOpEq, binaryutil.NativeEndian.PutUint32(uint32(index)))
}

// MatchOtherInputIndex matches packets that arrive by any other link.
func MatchOtherInputIndex(index int) []expr.Any {
	return matchMeta(expr.MetaKeyIIF, expr.CmpOpNeq, binaryutil.NativeEndian.PutUint32(uint32(index)))
}

// MatchInputDevice matches packets that arrive by a device.
func MatchInputDevice(name string) []expr.Any {
	return matchMeta(expr.MetaKeyIIFNAME, expr.CmpOpEq, deviceName(name))
}

// MatchOutputDevice matches packets that leave, or do not leave, by a device.
func MatchOutputDevice(name string, op expr.CmpOp) []expr.Any {
	return matchMeta(expr.MetaKeyOIFNAME, op, deviceName(name))
}

func deviceName(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

// MatchNoState matches packets whose connection is in none of these states (expr.CtStateBit…).
func MatchNoState(states uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(states), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
	}
}

func matchMeta(key expr.MetaKey, op expr.CmpOp, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: value}}
}

// SourceNAT replaces the source of packets by the address.
func SourceNAT(a netip.Addr) []expr.Any {
	proto := IPv4.Proto
	if a.Is6() {
		proto = IPv6.Proto
	}
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: a.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: uint32(proto), RegAddrMin: 1},
	}
}

// Marks of packets in the router. The rules of several packages match them, so each has its own value.
const (
	// LocalMark marks packets for a transparent socket of the router.
	LocalMark = 1
	// MasqueradeMark marks packets that leave through the kernel alone.
	MasqueradeMark = 2
	// ProxyMark marks packets to addresses of the pods' network that the proxy of the sending pod handles, as it
	// does packets to other hosts.
	ProxyMark = 4
	// UnknownClientMark marks packets from the router's own address that a client has sent which is not
	// this host: the pod cannot see its address. Other packets from the router's addresses come from
	// this host, which may always connect to its pods.
	UnknownClientMark = 8
	// ServiceMark marks packets to Services with addresses outside the pods' network, which the router handles as
	// it does the other Services.
	ServiceMark = 32
	// PeerMark marks packets to pods of other nodes of a cluster, which the kernel routes.
	PeerMark = 16
	// NodeMark marks packets to Services in the network of a node, whose answers must come back through it.
	NodeMark = 64
	// NodeLocalMark marks packets like NodeMark, but their answers come back anyway.
	NodeLocalMark = 128
)

// MatchMark matches packets that have this mark.
func MatchMark(mark uint32) []expr.Any {
	return matchMeta(expr.MetaKeyMARK, expr.CmpOpEq, binaryutil.NativeEndian.PutUint32(mark))
}

// MatchOtherMark matches packets that do not have this mark.
func MatchOtherMark(mark uint32) []expr.Any {
	return matchMeta(expr.MetaKeyMARK, expr.CmpOpNeq, binaryutil.NativeEndian.PutUint32(mark))
}

// SetMark marks a packet.
func SetMark(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(mark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}
}

// Verdict ends a rule.
func Verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// Reject returns rules that reject matching packets: TCP with a reset, as a host does on a port without a
// listener, others with an ICMP error of a code (NFT_REJECT_ICMPX_…).
func Reject(match []expr.Any, code uint8) [][]expr.Any {
	return [][]expr.Any{
		slices.Concat(match, MatchProtocol(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}),
		slices.Concat(match, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: code}}),
	}
}
