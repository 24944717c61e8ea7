package egress

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// Packets that are written to a TUN device: the answers that the kernel would have given if it had
// made the connection itself.

// protocol numbers (IANA).
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// flow identifies a connection or session: src is the pod.
type flow struct{ src, dst netip.AddrPort }

// packet is the parsed content of an IP packet from a pod.
type packet struct {
	raw      []byte // the whole packet
	src, dst netip.Addr
	proto    byte
	payload  []byte // after the IP header
}

// parse reads an IP packet; ok is false for packets that a pod's kernel does not send or a router
// does not forward (fragments are reassembled by then, extension headers are rare).
func parse(b []byte) (p packet, ok bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		head := int(b[0]&15) * 4
		if head < 20 || len(b) < head || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
			return p, false
		}
		return packet{b, netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[9], b[head:]}, true
	case len(b) >= 40 && b[0]>>4 == 6:
		return packet{b, netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[6], b[40:]}, true
	}
	return p, false
}

const (
	flagFIN, flagSYN, flagRST, flagACK = 1, 2, 4, 16
)

// isSYN reports whether p is the first packet of a TCP connection, and of which flow.
func (p packet) isSYN() (f flow, ok bool) {
	if p.proto != protoTCP || len(p.payload) < 20 || p.payload[13]&(flagFIN|flagSYN|flagRST|flagACK) != flagSYN {
		return f, false
	}
	return flow{
		netip.AddrPortFrom(p.src, binary.BigEndian.Uint16(p.payload)),
		netip.AddrPortFrom(p.dst, binary.BigEndian.Uint16(p.payload[2:])),
	}, true
}

// sequence returns the initial sequence number of a first packet. A retransmission has the same.
func (p packet) sequence() uint32 { return binary.BigEndian.Uint32(p.payload[4:]) }

// clone copies a packet so that it outlives its buffer.
func (p packet) clone() packet {
	c, _ := parse(bytes.Clone(p.raw))
	return c
}

// isEchoRequest reports whether p is an ICMP echo request.
func (p packet) isEchoRequest() bool {
	return len(p.payload) >= 8 && (p.proto == protoICMP && p.payload[0] == 8 || p.proto == protoICMPv6 && p.payload[0] == 128)
}

// tcpReset answers the first packet of a connection as a closed port does.
func tcpReset(syn packet) []byte {
	t := make([]byte, 20)
	copy(t, syn.payload[2:4])
	copy(t[2:], syn.payload[:2])
	binary.BigEndian.PutUint32(t[8:], binary.BigEndian.Uint32(syn.payload[4:])+1)
	t[12], t[13] = 5<<4, flagRST|flagACK
	putChecksum(t[16:], syn.dst, syn.src, protoTCP, t)
	return ipPacket(syn.dst, syn.src, protoTCP, t)
}

// icmpCode is a code of ICMP and of ICMPv6 (RFC 792, RFC 4443).
type icmpCode struct{ v4, v6 byte }

var (
	noRoute   = icmpCode{0, 0}
	noHost    = icmpCode{1, 3}
	noPort    = icmpCode{3, 4}
	forbidden = icmpCode{13, 1}
)

// icmpUnreachable returns the error that reports to the sender that a packet was not delivered.
func icmpUnreachable(p packet, from netip.Addr, reason icmpCode) []byte {
	quoted := p.raw[:min(len(p.raw), len(p.raw)-len(p.payload)+8)]
	if p.src.Is4() {
		m := append([]byte{3, reason.v4, 0, 0, 0, 0, 0, 0}, quoted...)
		binary.BigEndian.PutUint16(m[2:], checksum(addWords(0, m)))
		return ipPacket(from, p.src, protoICMP, m)
	}
	m := append([]byte{1, reason.v6, 0, 0, 0, 0, 0, 0}, quoted...)
	putChecksum(m[2:], from, p.src, protoICMPv6, m)
	return ipPacket(from, p.src, protoICMPv6, m)
}

// udpPacket returns the beginning of a UDP packet of a flow, for icmpUnreachable to quote.
func udpPacket(f flow) packet {
	u := make([]byte, 8)
	binary.BigEndian.PutUint16(u, f.src.Port())
	binary.BigEndian.PutUint16(u[2:], f.dst.Port())
	binary.BigEndian.PutUint16(u[4:], 8)
	raw := ipPacket(f.src.Addr(), f.dst.Addr(), protoUDP, u)
	p, _ := parse(raw)
	return p
}

// echoReply makes the answer to an echo request from what the host's kernel has received: the
// socket's identifier in that is the kernel's own.
func echoReply(request packet, m []byte) []byte {
	copy(m[4:6], request.payload[4:6])
	m[2], m[3] = 0, 0
	if request.src.Is4() {
		binary.BigEndian.PutUint16(m[2:], checksum(addWords(0, m)))
	} else {
		putChecksum(m[2:], request.dst, request.src, protoICMPv6, m)
	}
	return ipPacket(request.dst, request.src, request.proto, m)
}

// ipPacket puts an IP header before a payload.
func ipPacket(src, dst netip.Addr, proto byte, payload []byte) []byte {
	const hops = 64
	if src.Is4() {
		h := make([]byte, 20, 20+len(payload))
		h[0], h[8], h[9] = 0x45, hops, proto
		binary.BigEndian.PutUint16(h[2:], uint16(20+len(payload)))
		copy(h[12:], src.AsSlice())
		copy(h[16:], dst.AsSlice())
		binary.BigEndian.PutUint16(h[10:], checksum(addWords(0, h)))
		return append(h, payload...)
	}
	h := make([]byte, 40, 40+len(payload))
	h[0], h[6], h[7] = 0x60, proto, hops
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	copy(h[8:], src.AsSlice())
	copy(h[24:], dst.AsSlice())
	return append(h, payload...)
}

// putChecksum writes the checksum of m, with the pseudo header, to place, which is in m and zero.
func putChecksum(place []byte, src, dst netip.Addr, proto byte, m []byte) {
	s := addWords(addWords(uint32(proto)+uint32(len(m)), src.AsSlice()), dst.AsSlice())
	binary.BigEndian.PutUint16(place, checksum(addWords(s, m)))
}

func addWords(s uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
		s = s&0xffff + s>>16
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func checksum(s uint32) uint16 {
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
