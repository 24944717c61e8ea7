package router

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/netns/ipam"
)

// Router is the network namespace that the pods of a user share. A pod is attached to it by a veth
// pair, p<slot> there and eth0 in the pod. It routes between pods; packets that are not for a pod
// go to the pod's own TUN device, t<slot>, if it has one. Pods do not depend on each other: any pod
// and any supervisor may disappear at any moment.
//
// Pods are not on one bridge, where they would see each other's frames and answer each other
// without passing the rules for Services.
//
// One process at a time changes the router: the caller holds a lock.
type Router struct {
	path   string
	thread *nsthread.Thread // stays in the namespace; nil: each use starts its own
}

// Open returns the router of a namespace, without a check that it exists.
func Open(nsPath string) Router { return Router{path: nsPath} }

// Enter returns the router for a sequence of operations, which run on one thread until Leave.
func (r Router) Enter() (Router, error) {
	thread, err := nsthread.Start(r.path)
	if err != nil {
		return Router{}, fmt.Errorf("enter the pods' router: %w", err)
	}
	r.thread = thread
	return r, nil
}

// Leave ends the thread of Enter.
func (r Router) Leave() { r.thread.Close() }

// Do runs f on a thread inside the router.
func (r Router) Do(f func() error) error {
	if r.thread != nil {
		return r.thread.Do(f)
	}
	return nsthread.Do(f, r.path)
}

// Numbers inside the router.
const (
	localTable  = 100   // delivers packets with nft.LocalMark
	tableBase   = 20000 // + slot: routes to the TUN device
	localPref   = 100   // of the rule for nft.LocalMark: before all others (ip-rule(8))
	proxyPref   = 150   // of the rule for nft.ProxyMark: before the routes to pods
	egressPref  = 33000 // of the rules to the TUN devices: after all others
	portBase    = 12000 // + slot: accepts the pod's connections
	linkGateway = "fe80::1"

	nobodyPriority = 9999 // of routes to addresses without a pod: after those to pods
)

// MTU is for the pods' and the router's devices. The kernel's cost of a stream is mostly a cost
// for each packet (docs/decisions/0037), so packets are as large as the 16 bits of IPv4's length
// allow: with an Ethernet header (14 bytes) at most 65535 bytes, rounded down to a multiple of 16.
// slirp4netns and pasta use the same value.
const MTU = 65520

// podLink and tunLink return the names of a pod's devices in the router.
func podLink(s ipam.Slot) string { return fmt.Sprintf("p%d", s) }
func tunLink(s ipam.Slot) string { return fmt.Sprintf("t%d", s) }

// DeviceIndex returns the number of the pod's device in the router.
func DeviceIndex(s ipam.Slot) int { return routerIndexBase + int(s) }

// Device numbers. If the kernel chose them, they would have to be queried.
const (
	podIndex        = 100     // in the pod; small numbers may belong to tunnels that every network has
	routerIndexBase = 1 << 16 // + slot
	tunIndexBase    = 2 << 16 // + slot
)

// sysctls are set in the router. Its sockets have peers that are microseconds away: a small
// window keeps data in flight in the processor's cache.
var sysctls = [][2]string{
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
	{"net/ipv4/conf/all/send_redirects", "0"},
	{"net/ipv4/conf/default/send_redirects", "0"},
	{"net/ipv4/conf/all/accept_redirects", "0"},
	// A new network inherits the following from the host, where they may differ.
	// ARP: every pod's device answers for the gateway's address, which is on the loopback device.
	{"net/ipv4/conf/all/arp_ignore", "0"},
	{"net/ipv4/conf/default/arp_ignore", "0"},
	{"net/ipv4/conf/all/arp_announce", "0"},
	{"net/ipv4/conf/default/arp_announce", "0"},
	{"net/ipv4/conf/all/arp_filter", "0"},
	{"net/ipv4/conf/default/arp_filter", "0"},
	// Packets from pods to 127.0.0.0/8 are dropped.
	{"net/ipv4/conf/all/route_localnet", "0"},
	{"net/ipv4/conf/default/route_localnet", "0"},
	{"net/ipv4/ip_local_port_range", "32768 65535"},
	{"net/ipv4/ip_unprivileged_port_start", "0"},
	// Early demultiplexing finds a packet's socket before the routing. A new connection from a port that
	// was used a minute ago would find the old connection's TIME_WAIT socket, and be dropped when it is
	// forwarded.
	{"net/ipv4/tcp_early_demux", "0"},
	// A datagram with another pod's source address would reach that pod's socket where no nftables rules
	// check the address. It is not needed: TPROXY finds the sockets.
	{"net/ipv4/udp_early_demux", "0"},
	{"net/ipv4/tcp_rmem", "4096 131072 1048576"},
	{"net/ipv4/tcp_wmem", "4096 65536 1048576"},
	{"net/ipv6/conf/all/forwarding", "1"},
	{"net/ipv6/conf/default/forwarding", "0"}, // otherwise every device joins the groups of routers and reports it: a TUN device would wake a hibernating supervisor
	{"net/ipv6/conf/default/accept_dad", "0"},
	{"net/ipv6/conf/default/accept_ra", "0"},
	{"net/ipv6/conf/default/addr_gen_mode", "1"}, // none: a TUN device with an address sends packets at once, which wakes a hibernating supervisor
}

// congestionControl is the algorithm of new TCP sockets.
const congestionControl = "net/ipv4/tcp_congestion_control"

// useReno selects an algorithm without a timer between a stream's segments, which BBR, the
// algorithm of some hosts, has: between a pod and the router nothing is lost and there is no
// bandwidth to probe. Every kernel has Reno, but its administrator may not permit it to others
// (tcp_allowed_congestion_control): then the algorithm stays and is slower.
func useReno() { _ = procfs.WriteSysctl(congestionControl, "reno") }

// Prepare configures the router with an address pool that overlaps no route of the host (the calling
// thread's network) and none of the given networks, and returns the pool. If another process has prepared
// the router, it returns that pool.
func (r Router) Prepare(others ...netip.Prefix) (ipam.Pool, error) {
	pool, err := r.CurrentPool()
	if err != nil || pool.V4.IsValid() {
		return pool, err
	}
	networks, err := HostNetworks()
	if err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if pool, err = ipam.ChoosePool(append(networks, others...)); err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if err := r.Do(func() error { return prepare(pool) }); err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	return pool, nil
}

// CurrentPool returns the router's pool; not valid before it is prepared.
func (r Router) CurrentPool() (pool ipam.Pool, err error) {
	err = r.Do(func() error {
		addrs, err := (&net.Interface{Index: nlbatch.LoopbackIndex}).Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			switch ip := p.Addr(); {
			case err != nil || ip.IsLoopback():
			case ip.Is4():
				pool.V4, _ = ip.Prefix(16)
			default:
				pool.V6, _ = ip.Prefix(64)
			}
		}
		return err
	})
	if err != nil {
		return ipam.Pool{}, fmt.Errorf("look at the pods' router: %w", err)
	}
	return pool, nil
}

// HostNetworks returns the destinations of all routes of the calling thread's network, in all
// tables, except those of ConnectNode and RouteNodes.
func HostNetworks() ([]netip.Prefix, error) {
	rib, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, unix.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list the host's routes: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil, fmt.Errorf("list the host's routes: %w", err)
	}
	var networks []netip.Prefix
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWROUTE || m.Data[5] == peerProtocol { // rtm_protocol
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, fmt.Errorf("list the host's routes: %w", err)
		}
		bits := int(m.Data[1]) // rtm_dst_len of struct rtmsg
		for _, a := range attributes {
			if ip, ok := netip.AddrFromSlice(a.Value); ok && a.Attr.Type == unix.RTA_DST {
				networks = append(networks, netip.PrefixFrom(ip.Unmap(), bits))
			}
		}
	}
	return networks, nil
}

// prepare may find the incomplete work of another process. It adds the gateway's IPv4 address last:
// that address marks the router as ready.
func prepare(pool ipam.Pool) error {
	for _, s := range sysctls {
		if err := procfs.WriteSysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	useReno()
	// br_netfilter, once loaded, affects only bridges. The router has none, so there is nothing to
	// set.
	var b nlbatch.Batch
	b.SetUp(nlbatch.LoopbackIndex, "loopback")
	for _, p := range []netip.Prefix{pool.V6, pool.V4} {
		if !supported(p) {
			continue
		}
		family := nlbatch.Family(p.Addr())
		b.AddRoute("add route to local sockets", nlbatch.Route{Dst: anyPrefix(p.Addr()), Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Link: nlbatch.LoopbackIndex, Table: localTable})
		b.AddRule("add rule for local sockets", family, localTable, localPref, nlbatch.Attr(nl.FRA_FWMARK, nl.Uint32Attr(nft.LocalMark)))
		// Addresses without a pod are unreachable, except addresses of Services that the proxies handle: see routeToTUN.
		b.AddRoute("add route to nobody", nlbatch.Route{Dst: p, Type: unix.RTN_UNREACHABLE, Priority: nobodyPriority})
		if p.Addr().Is6() {
			b.AddAddress(nlbatch.LoopbackIndex, "loopback", nft.HostPrefix(pool.Gateway().V6))
		}
	}
	if err := b.Send(); err != nil {
		return err
	}
	var ready nlbatch.Batch // separate: a batch continues after an error
	ready.AddAddress(nlbatch.LoopbackIndex, "loopback", nft.HostPrefix(pool.Gateway().V4))
	return ready.Send()
}

// supported reports whether the kernel supports the family of a prefix.
func supported(p netip.Prefix) bool { return p.Addr().Is4() || hasIPv6() }

var hasIPv6 = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
})

// anyPrefix returns the prefix of all addresses of an address's family.
func anyPrefix(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
