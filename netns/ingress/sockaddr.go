package ingress

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// sockaddr converts an address for a socket of its family.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port()), ZoneId: zoneID(a.Addr().Zone())}
}

// sockaddrFor is sockaddr for an IPv6 socket, which uses mapped addresses for IPv4.
func sockaddrFor(a netip.AddrPort, six bool) unix.Sockaddr {
	if six && a.Addr().Is4() {
		return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	return sockaddr(a)
}

func zone(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if link, err := net.InterfaceByName(zone); err == nil {
		return uint32(link.Index)
	}
	return 0
}

// replyFrom makes the control messages of answers from a datagram's: the same address of the
// host, and the same link only if the client's address is link-local.
func replyFrom(oob []byte, client netip.Addr) string {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return ""
	}
	var out []byte
	for _, m := range messages {
		six := m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo
		four := m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo
		switch {
		case six:
			link := uint32(0)
			if client.IsLinkLocalUnicast() {
				link = binary.NativeEndian.Uint32(m.Data[16:])
			}
			info := unix.Inet6Pktinfo{Addr: [16]byte(m.Data[:16]), Ifindex: link}
			return string(unix.PktInfo6(&info))
		case four: // ipi_ifindex, ipi_spec_dst, ipi_addr
			info := unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[4:8])}
			out = unix.PktInfo4(&info)
		}
	}
	return string(out)
}
