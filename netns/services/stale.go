package services

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// stale has the endpoints of each UDP port of a Service. It matches the flows that the kernel tracks from clients of these ports
// to anything else.
type stale map[netip.AddrPort][]netip.AddrPort

// forgetStale makes the kernel forget the flows of UDP that lead to no endpoint of their Service: it would direct a client
// there as long as the client sends anything (kube-proxy: pkg/proxy/conntrack/cleanup.go, CleanStaleEntries). It acts in
// the calling thread's network.
func forgetStale(routes []route) error {
	flows := map[netlink.InetFamily]stale{}
	for _, r := range routes {
		if r.protocol != "UDP" {
			continue
		}
		family := netlink.InetFamily(familyOf(r.from.Addr()).Proto)
		if flows[family] == nil {
			flows[family] = stale{}
		}
		flows[family][r.from] = r.to
		if r.outside { // a supervisor passes the packets on, which the kernel does not redirect
			flows[family][r.from] = []netip.AddrPort{r.from}
		}
	}
	for family, s := range flows {
		_, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, s)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, netlink.ErrDumpInterrupted) { // EINVAL: the kernel does not show its flows
			return err
		}
	}
	return nil
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (s stale) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	to, isOfService := s[addrPort(f.Forward.DstIP, f.Forward.DstPort)]
	return isOfService && f.Forward.Protocol == unix.IPPROTO_UDP && !slices.Contains(to, addrPort(f.Reverse.SrcIP, f.Reverse.SrcPort))
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
