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

// Router is the network namespace that the pods of a user share. A pod hangs on it by a
// pair of devices, p<slot> there and eth0 in the pod; it routes between pods, and what is
// not for a pod goes to the pod's own TUN device, t<slot>, if it has one. Nothing of one pod
// is another's: any of them, and any supervisor, may be gone at any moment.
//
// Pods are not on one bridge, where they would see each other's frames and answer each
// other past the rules for Services.
//
// What changes the router is done by one process at a time: the caller holds a lock.
type Router struct {
	path   string
	thread *nsthread.Thread // that stays in it; nil: each use makes its own
}

// Open names a router by its namespace.
func Open(nsPath string) Router { return Router{path: nsPath} }

// Enter is the router for who has much to do there, until Leave: on one thread.
func (r Router) Enter() (Router, error) {
	thread, err := nsthread.Start(r.path)
	if err != nil {
		return Router{}, fmt.Errorf("enter the pods' router: %w", err)
	}
	r.thread = thread
	return r, nil
}

// Leave ends a Stay.
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
	localMark   = 1     // of packets for a socket of the router's that has another's address
	localTable  = 100   // delivers those
	tableBase   = 20000 // + slot: routes to the TUN device
	localPref   = 100   // before all: ip-rule(8)
	egressPref  = 33000 // after all
	portBase    = 12000 // + slot: takes the pod's connections
	linkGateway = "fe80::1"
)

// MTU is as large as a device's may be with which segmentation can still be left to the
// last device.
const MTU = 65520

// podLink and tunLink name a pod's devices in the router.
func podLink(s ipam.Slot) string { return fmt.Sprintf("p%d", s) }
func tunLink(s ipam.Slot) string { return fmt.Sprintf("t%d", s) }

// Numbers of devices. The kernel would choose others and had to be asked for them.
const (
	podIndex        = 100     // in the pod; small ones may be those of tunnels that every network has
	routerIndexBase = 1 << 16 // + slot
	tunIndexBase    = 2 << 16 // + slot
)

// sysctls of the router. Sockets there have partners that are microseconds away: a small
// window keeps what is under way in the processor's cache.
var sysctls = [][2]string{
	{"net/ipv4/ip_forward", "1"},
	{"net/ipv4/conf/all/rp_filter", "0"},
	{"net/ipv4/conf/default/rp_filter", "0"},
	{"net/ipv4/conf/all/send_redirects", "0"},
	{"net/ipv4/conf/default/send_redirects", "0"},
	{"net/ipv4/conf/all/accept_redirects", "0"},
	// A new network has these from the host's, where they may be otherwise: the gateway is
	// asked for by all devices, and nobody's loopback is routed to.
	{"net/ipv4/conf/all/arp_ignore", "0"},
	{"net/ipv4/conf/default/arp_ignore", "0"},
	{"net/ipv4/conf/all/arp_announce", "0"},
	{"net/ipv4/conf/default/arp_announce", "0"},
	{"net/ipv4/conf/all/arp_filter", "0"},
	{"net/ipv4/conf/default/arp_filter", "0"},
	{"net/ipv4/conf/all/route_localnet", "0"},
	{"net/ipv4/conf/default/route_localnet", "0"},
	{"net/ipv4/ip_local_port_range", "32768 65535"},
	{"net/ipv4/ip_unprivileged_port_start", "0"},
	{"net/ipv4/tcp_early_demux", "0"}, // or the first packet of a connection that used the same port a minute ago is given to its TIME_WAIT, and dropped when it is forwarded
	{"net/ipv4/udp_early_demux", "0"}, // or a datagram in another pod's name, where no rules of nftables look at it, comes to that one's socket; TPROXY finds sockets before
	{"net/ipv4/tcp_rmem", "4096 131072 1048576"},
	{"net/ipv4/tcp_wmem", "4096 65536 1048576"},
	{"net/ipv6/conf/all/forwarding", "1"},
	{"net/ipv6/conf/default/forwarding", "0"}, // or every device joins groups of routers, which it tells: a TUN device would wake who sleeps
	{"net/ipv6/conf/default/accept_dad", "0"},
	{"net/ipv6/conf/default/accept_ra", "0"},
	{"net/ipv6/conf/default/addr_gen_mode", "1"}, // none: a TUN device with an address says hello and wakes who sleeps
}

// congestionControl is the algorithm of new sockets of TCP.
const congestionControl = "net/ipv4/tcp_congestion_control"

// useReno has no timer between a stream's segments, as there is where the host's algorithm
// is BBR: between a pod and the router nothing is lost and there is nothing to find out.
// Every kernel has Reno, but its administrator may keep it from others
// (tcp_allowed_congestion_control): then all is as it was, and slower.
func useReno() { _ = procfs.WriteSysctl(congestionControl, "reno") }

// Prepare makes the router ready, if nobody has before, with a pool that clashes with no
// route of the calling thread's network, the host's, and returns its pool.
func (r Router) Prepare() (ipam.Pool, error) {
	pool, err := r.CurrentPool()
	if err != nil || pool.V4.IsValid() {
		return pool, err
	}
	networks, err := hostNetworks()
	if err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if pool, err = ipam.ChoosePool(networks); err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if err := r.Do(func() error { return prepare(pool) }); err != nil {
		return ipam.Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	return pool, nil
}

// CurrentPool is the router's pool; not valid before it is prepared.
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

// hostNetworks are the destinations of all routes of the calling thread's network, in all
// tables.
func hostNetworks() ([]netip.Prefix, error) {
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
		if m.Header.Type != unix.RTM_NEWROUTE {
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

// prepare may find what another has left half done. The gateway's IPv4 address comes last:
// with it the router is ready.
func prepare(pool ipam.Pool) error {
	for _, s := range sysctls {
		if err := procfs.WriteSysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	useReno()
	// br_netfilter, once loaded, is for bridges, of which there is none here: nothing to set.
	var b nlbatch.Batch
	b.SetUp(nlbatch.LoopbackIndex, "loopback")
	for _, p := range []netip.Prefix{pool.V6, pool.V4} {
		if !supported(p) {
			continue
		}
		family := nlbatch.Family(p.Addr())
		b.AddRoute("add route to local sockets", nlbatch.Route{Dst: anyPrefix(p.Addr()), Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Link: nlbatch.LoopbackIndex, Table: localTable})
		b.AddRule("add rule for local sockets", family, localTable, localPref, nlbatch.Attr(nl.FRA_FWMARK, nl.Uint32Attr(localMark)))
		// Addresses that no pod has are nobody's.
		b.AddRoute("add route to nobody", nlbatch.Route{Dst: p, Type: unix.RTN_UNREACHABLE, Priority: 9999})
		if p.Addr().Is6() {
			b.AddAddress(nlbatch.LoopbackIndex, "loopback", nft.HostPrefix(pool.Gateway().V6))
		}
	}
	if err := b.Send(); err != nil {
		return err
	}
	var ready nlbatch.Batch // by itself: a batch goes on after what has failed
	ready.AddAddress(nlbatch.LoopbackIndex, "loopback", nft.HostPrefix(pool.Gateway().V4))
	return ready.Send()
}

// supported says whether the kernel speaks the family of a prefix.
func supported(p netip.Prefix) bool { return p.Addr().Is4() || hasIPv6() }

var hasIPv6 = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
})

// anyPrefix is all of an address's family.
func anyPrefix(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
