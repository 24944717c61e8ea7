package router

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/netns/ipam"
)

// Numbers inside the router for packets that leave through the kernel alone: netns/masquerade makes
// the device.
const (
	MasqueradeTable = 101 // their routing table
	MasqueradePref  = 101 // ip-rule(8)
)

// hostGSOSize limits the packets of a pod's device to the maximum size that most devices of a host accept, and a TUN
// device. The kernel would cut larger ones into pieces of the MTU, which are then handled one by one.
func hostGSOSize() *nl.RtAttr {
	return nlbatch.Attr(unix.IFLA_GSO_IPV4_MAX_SIZE, nl.Uint32Attr(1<<16))
}

// OpenMasqueraded is OpenTraffic for a pod, by the path of its network namespace, whose IPv4
// packets leave marked with nft.MasqueradeMark: TCP, UDP and ICMP to permitted destinations. Everything
// else uses the descriptors as usual: requests to the gateway, HostLoopback, IPv6, and packets to
// be refused. The pod's packets to destinations other than pods are at most mtu bytes long. The
// calling thread's network is the host's.
func (r Router) OpenMasqueraded(podNS string, pool ipam.Pool, s ipam.Slot, mtu int) (TrafficFDs, error) {
	if pool.NodeMTU > 0 {
		mtu = min(mtu, pool.NodeMTU)
	}
	control, controlErr := os.ReadFile("/proc/sys/" + congestionControl)
	err := nsthread.Do(func() error {
		// Its connections extend beyond the router: they use the host's congestion control.
		if controlErr == nil {
			_ = procfs.WriteSysctl(congestionControl, strings.TrimSpace(string(control))) // the host may not permit it here
		}
		var b nlbatch.Batch
		b.SetUp(podIndex, "eth0", hostGSOSize())
		addresses, gateway := pool.Addresses(s).V4, pool.Gateway().V4
		addRoutesToPods(&b, pool, addresses, gateway)
		b.AddRoute(fmt.Sprintf("add the default route by %s", gateway), nlbatch.Route{Dst: anyPrefix(addresses), Link: podIndex, Gateway: gateway, Src: addresses, MTU: mtu})
		return b.Send()
	}, podNS)
	if err != nil {
		return nil, fmt.Errorf("forward the pod's traffic: %w", err)
	}
	return r.openTraffic(pool, s, viaMasquerade)
}

// masqueradeRules marks the packets that leave through the masquerade device; other packets continue.
// Replies to transparent sockets are matched first, as elsewhere.
func masqueradeRules() [][]expr.Any {
	all := [][]expr.Any{append(append(nft.IPv4.MatchFamily(), nft.MatchProtocol(unix.IPPROTO_UDP)...), toOwnSocket(nft.IPv4)...)}
	for _, p := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP} {
		rule := slices.Concat(nft.IPv4.MatchFamily(), nft.MatchProtocol(p), nft.MatchOtherMark(nft.ProxyMark))
		for _, not := range unreachable {
			rule = append(rule, nft.IPv4.MatchAddress(nft.IPv4.DestinationOffset(), not, expr.CmpOpNeq)...)
		}
		all = append(all, slices.Concat(rule, nft.SetMark(nft.MasqueradeMark), nft.Verdict(expr.VerdictAccept)))
	}
	return all
}
