package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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
type Router struct{ path string }

// OpenRouter names a router by its namespace.
func OpenRouter(nsPath string) Router { return Router{nsPath} }

// Do is the package's Do, inside the router.
func (r Router) Do(f func() error) error { return Do(r.path, f) }

// Numbers inside the router.
const (
	localMark   = 1     // of packets for a socket of the router's that has another's address
	localTable  = 100   // delivers those
	firstTable  = 20000 // + slot: routes to the TUN device
	localPref   = 100   // before all: ip-rule(8)
	egressPref  = 33000 // after all
	firstPort   = 12000 // + slot: takes the pod's connections
	linkGateway = "fe80::1"
)

// MTU is as large as a device's may be with which segmentation can still be left to the
// last device.
const MTU = 65520

// podLink and tunLink name a pod's devices in the router.
func podLink(s Slot) string { return fmt.Sprintf("p%d", s) }
func tunLink(s Slot) string { return fmt.Sprintf("t%d", s) }

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
	{"net/ipv4/tcp_rmem", "4096 131072 1048576"},
	{"net/ipv4/tcp_wmem", "4096 65536 1048576"},
	{"net/ipv6/conf/all/forwarding", "1"},
	{"net/ipv6/conf/default/forwarding", "0"}, // or every device joins groups of routers, which it tells: a TUN device would wake who sleeps
	{"net/ipv6/conf/default/accept_dad", "0"},
	{"net/ipv6/conf/default/accept_ra", "0"},
	{"net/ipv6/conf/default/addr_gen_mode", "1"}, // none: a TUN device with an address says hello and wakes who sleeps
}

// Prepare makes the router ready, if nobody has before, with a pool that clashes with no
// route of the calling thread's network, the host's, and returns its pool.
func (r Router) Prepare() (Pool, error) {
	pool, err := r.Pool()
	if err != nil || pool.V4.IsValid() {
		return pool, err
	}
	networks, err := hostNetworks()
	if err != nil {
		return Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if pool, err = ChoosePool(networks); err != nil {
		return Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	if err := within(r.path, func(h *netlink.Handle) error { return prepare(h, pool) }); err != nil {
		return Pool{}, fmt.Errorf("prepare the pods' router: %w", err)
	}
	return pool, nil
}

// Pool is the router's pool; not valid before it is prepared.
func (r Router) Pool() (pool Pool, err error) {
	err = r.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(lo, netlink.FAMILY_ALL)
		for _, a := range addrs {
			ip, _ := netip.AddrFromSlice(a.IP)
			switch ip = ip.Unmap(); {
			case ip.IsLoopback():
			case ip.Is4():
				pool.V4, _ = ip.Prefix(16)
			default:
				pool.V6, _ = ip.Prefix(64)
			}
		}
		return err
	})
	if err != nil {
		return Pool{}, fmt.Errorf("look at the pods' router: %w", err)
	}
	return pool, nil
}

func hostNetworks() ([]netip.Prefix, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the host's routes: %w", err)
	}
	var networks []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		ip, ok := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		if ok {
			networks = append(networks, netip.PrefixFrom(ip.Unmap(), bits))
		}
	}
	return networks, nil
}

// prepare may find what another has left half done. The gateway's IPv4 address comes last:
// with it the router is ready.
func prepare(h *netlink.Handle, pool Pool) error {
	for _, s := range sysctls {
		if err := sysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	// br_netfilter, once loaded, is for bridges, of which there is none here: nothing to set.
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	for _, p := range []netip.Prefix{pool.V6, pool.V4} {
		if !has(p) {
			continue
		}
		family := familyOf(p.Addr())
		everything := ipNet(netip.PrefixFrom(unspecified(p.Addr()), 0))
		if err := h.RouteReplace(&netlink.Route{Type: unix.RTN_LOCAL, Table: localTable, Dst: everything, LinkIndex: lo.Attrs().Index, Scope: netlink.SCOPE_HOST}); err != nil {
			return fmt.Errorf("add route to local sockets: %w", err)
		}
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table, rule.Priority = family, localMark, localTable, localPref
		if err := h.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule for local sockets: %w", err)
		}
		// Addresses that no pod has are nobody's.
		if err := h.RouteReplace(&netlink.Route{Type: unix.RTN_UNREACHABLE, Dst: ipNet(p), Priority: 9999}); err != nil {
			return fmt.Errorf("add route to nobody: %w", err)
		}
		gw := pool.Gateway().V4
		if p.Addr().Is6() {
			gw = pool.Gateway().V6
		}
		if err := addAddress(h, lo, gw); err != nil {
			return err
		}
	}
	return nil
}

// has says whether the kernel speaks the family of a prefix.
func has(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return true
	}
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

// within runs f inside a network namespace, with a socket to the kernel's network there.
func within(nsPath string, f func(*netlink.Handle) error) error {
	return Do(nsPath, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("speak to the kernel's network: %w", err)
		}
		defer h.Close()
		return f(h)
	})
}

// sysctl sets one of the calling thread's network. What this kernel has not got needs not
// be set.
func sysctl(name, value string) error {
	err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set %s: %w", strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}

func addAddress(h *netlink.Handle, l netlink.Link, a netip.Addr) error {
	err := h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen())), Flags: nodad(a)})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add address %s to %s: %w", a, l.Attrs().Name, err)
	}
	return nil
}

// nodad: an address that is nobody else's is usable at once.
func nodad(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return unix.IFA_F_NODAD
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
