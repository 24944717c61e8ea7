package router

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/netns/ipam"
)

// Attach connects a pod, by the path of its network namespace, to the router: the pod's eth0 gets
// the addresses of its slot and the router as its gateway. From then on pods reach each other. It
// replaces what an earlier attempt has left.
func (r Router) Attach(podNS string, pool ipam.Pool, s ipam.Slot) error {
	addresses := pool.Addresses(s)
	err := r.Do(func() error {
		err := attachRouterSide(podNS, pool, s, addresses)
		if err == nil {
			err = nsthread.DoInNetwork(podNS, func() error { return attachPodSide(pool, s, addresses) })
		}
		if err == nil {
			err = waitForCarrier(routerIndexBase+int(s), podLink(s))
		}
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("attach the pod to the network: %w", err), r.Detach(s))
	}
	return nil
}

func attachRouterSide(podNS string, pool ipam.Pool, s ipam.Slot, addresses ipam.Addresses) error {
	ns, err := unix.Open(podNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", podNS, err)
	}
	defer unix.Close(ns)
	var b nlbatch.Batch
	addVeth(&b, vethEnd{routerIndexBase + int(s), podLink(s), routerMAC(s)}, vethEnd{podIndex, "eth0", podMAC(s)}, ns)
	if supported(pool.V6) {
		b.AddAddress(routerIndexBase+int(s), podLink(s), netip.PrefixFrom(netip.MustParseAddr(linkGateway), 64))
	}
	for _, p := range nodeNetworks(pool) {
		b.AddRoute("add route to nobody", nlbatch.Route{Dst: p, Type: unix.RTN_UNREACHABLE, Priority: nobodyPriority})
	}
	for _, a := range usable(addresses, pool) {
		b.AddRoute(fmt.Sprintf("add route to %s", a), nlbatch.Route{Dst: nft.HostPrefix(a), Link: routerIndexBase + int(s), Scope: unix.RT_SCOPE_LINK})
		b.AddNeighbour(routerIndexBase+int(s), a, podMAC(s))
	}
	err = b.Send()
	if errors.Is(err, unix.EEXIST) { // of an earlier run; the kernel may be removing it
		if err = deleteLink(podLink(s)); err == nil || errors.Is(err, unix.ENODEV) {
			err = b.Send()
		}
	}
	if err != nil {
		return err
	}
	return procfs.WriteSysctl("net/ipv4/conf/"+podLink(s)+"/rp_filter", "1")
}

// gsoMaxSize is the maximum size of a packet that a device sends before it is cut into pieces of
// its MTU: four such pieces (BIG TCP). The cost of a packet is paid a quarter as often. It applies
// to IPv4: IPv6 needs another header for it, which programs that inspect packets may not support.
const gsoMaxSize = 4 * 66 << 10

// vethEnd is one end of a veth pair.
type vethEnd struct {
	index int
	name  string
	mac   []byte
}

// addVeth makes a veth pair: the router's end, which is up, and the pod's, in the network of a
// file. Kernels before 6.3 ignore unknown segmentation attributes.
func addVeth(b *nlbatch.Batch, router, pod vethEnd, podNS int) {
	mtu, queue := nlbatch.Attr(unix.IFLA_MTU, nl.Uint32Attr(MTU)), nlbatch.Attr(unix.IFLA_TXQLEN, nl.Uint32Attr(0))
	big := nlbatch.Attr(unix.IFLA_GSO_IPV4_MAX_SIZE, nl.Uint32Attr(gsoMaxSize))
	peer := nlbatch.Attr(nl.VETH_INFO_PEER, nil)
	for _, d := range []nl.NetlinkRequestData{nlbatch.LinkMessage(pod.index, false), nlbatch.Attr(unix.IFLA_IFNAME, nl.ZeroTerminated(pod.name)), nlbatch.Attr(unix.IFLA_ADDRESS, pod.mac),
		mtu, queue, big, nlbatch.Attr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(podNS)))} {
		peer.AddChild(d)
	}
	info := nlbatch.Attr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("veth"))
	info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddChild(peer)
	b.Add(nlbatch.Change{What: "make the pod's device"}, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		nlbatch.LinkMessage(router.index, true), nlbatch.Attr(unix.IFLA_IFNAME, nl.ZeroTerminated(router.name)), nlbatch.Attr(unix.IFLA_ADDRESS, router.mac), mtu, queue, big, info)
}

// deleteLink removes a device.
func deleteLink(name string) error {
	var b nlbatch.Batch
	b.Add(nlbatch.Change{What: "remove " + name}, unix.RTM_DELLINK, 0, nlbatch.LinkMessage(0, false), nlbatch.Attr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	return b.Send()
}

// UsableAddresses returns the addresses of a pod that this kernel supports.
func UsableAddresses(p ipam.Pool, s ipam.Slot) []netip.Addr { return usable(p.Addresses(s), p) }

func usable(a ipam.Addresses, p ipam.Pool) []netip.Addr {
	if supported(p.V6) {
		return []netip.Addr{a.V4, a.V6}
	}
	return []netip.Addr{a.V4}
}

func attachPodSide(pool ipam.Pool, s ipam.Slot, addresses ipam.Addresses) error {
	if err := procfs.WriteSysctl("net/ipv6/conf/eth0/accept_dad", "0"); err != nil {
		return err
	}
	useReno()
	var b nlbatch.Batch
	for _, a := range usable(addresses, pool) {
		b.AddAddress(podIndex, "eth0", nft.HostPrefix(a))
	}
	var size []nl.NetlinkRequestData
	if pool.NodeMTU > 0 {
		size = append(size, hostGSOSize()) // larger packets would be cut before the tunnel to other nodes
	}
	b.SetUp(podIndex, "eth0", size...)
	for _, a := range usable(addresses, pool) {
		gateway := pool.Gateway().V4
		if a.Is6() {
			gateway = netip.MustParseAddr(linkGateway)
			// The kernel adds its own route later, from another thread: until then answers would be
			// lost.
			b.AddRoute("add the route to itself", nlbatch.Route{Dst: nft.HostPrefix(a), Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Link: podIndex, Table: unix.RT_TABLE_LOCAL})
		}
		b.AddRoute(fmt.Sprintf("add the default route by %s", gateway), nlbatch.Route{Dst: anyPrefix(a), Link: podIndex, Gateway: gateway, Src: a, MTU: pool.NodeMTU})
		if pool.NodeMTU > 0 {
			addRoutesToPods(&b, pool, a, gateway)
		}
		b.AddNeighbour(podIndex, gateway, routerMAC(s))
	}
	return b.Send()
}

// addRoutesToPods adds the routes for which the MTU of the default route is not valid: those to pods and
// Services of this router, of the family of the pod's address a.
func addRoutesToPods(b *nlbatch.Batch, pool ipam.Pool, a, gateway netip.Addr) {
	for _, p := range pool.Prefixes() {
		if p.Addr().Is4() == a.Is4() {
			b.AddRoute("add the route to pods", nlbatch.Route{Dst: p, Link: podIndex, Gateway: gateway, Src: a})
		}
	}
}

// nodeNetworks returns the networks that a cluster has given to this node, of the families that the
// kernel supports.
func nodeNetworks(p ipam.Pool) []netip.Prefix {
	return slices.DeleteFunc([]netip.Prefix{p.NodeV4, p.NodeV6}, func(n netip.Prefix) bool { return !n.IsValid() || !supported(n) })
}

// Disconnect takes down the router's end of a pod's device: nothing passes until the pod is attached
// again.
func (r Router) Disconnect(s ipam.Slot) error {
	return r.Do(func() error {
		link, err := netlink.LinkByName(podLink(s))
		if err == nil {
			err = netlink.LinkSetDown(link)
		}
		if err != nil {
			return fmt.Errorf("take down %s: %w", podLink(s), err)
		}
		return nil
	})
}

// Detach removes what Attach and OpenTraffic have made for pods in the router; missing parts are
// not an error. It takes the kernel tens of milliseconds.
func (r Router) Detach(gone ...ipam.Slot) error {
	err := r.Do(func() error {
		var errs []error
		all := map[ipam.Slot]bool{}
		for _, s := range gone {
			all[s] = true
			for _, name := range []string{podLink(s), tunLink(s)} {
				if link, err := netlink.LinkByName(name); err == nil {
					errs = append(errs, netlink.LinkDel(link))
				}
			}
			errs = append(errs, deleteRules(s))
		}
		return errors.Join(append(errs, deleteTables(all))...)
	})
	if err != nil {
		return fmt.Errorf("detach from the network: %w", err)
	}
	return nil
}

// deleteRules removes the routing rules that direct a pod's packets to its TUN device, and the rules of
// dropSpoofed6.
func deleteRules(s ipam.Slot) error {
	for _, rule := range append(spoofRules6(s), egressRule(s, netlink.FAMILY_V4), egressRule(s, netlink.FAMILY_V6)) {
		for {
			err := netlink.RuleDel(rule)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) {
				break
			}
			if err != nil {
				return fmt.Errorf("remove rule of %s: %w", podLink(s), err)
			}
		}
	}
	return nil
}

func egressRule(s ipam.Slot, family int) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.IifName, rule.Table, rule.Priority = family, podLink(s), tableBase+int(s), egressPref
	return rule
}

// Sweep detaches pods that ended without Detach: their devices disappeared with their namespace.
func (r Router) Sweep(taken map[ipam.Slot]bool) error {
	var gone []ipam.Slot
	err := r.Do(func() error {
		rules, err := netlink.RuleList(netlink.FAMILY_V4)
		for _, rule := range rules {
			if s := ipam.Slot(rule.Table - tableBase); rule.Priority == egressPref && s >= 1 && s <= ipam.MaxSlot && !taken[s] {
				gone = append(gone, s)
			}
		}
		return err
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	return r.Detach(gone...)
}

// carrierTimeout is how long waitForCarrier waits. Packets that are lost after that are sent again.
const carrierTimeout = 2 * time.Second

// waitForCarrier waits until one end of a veth pair, a device of the calling thread's network, transmits. The kernel learns
// later, on another thread (linkwatch), that the other end is up, and drops packets until then: a
// client that connects meanwhile retries after a second. Since Linux 6.8 a query for the device
// makes the kernel check at once.
func waitForCarrier(index int, name string) error {
	if up, err := isUp(index, name); up || err != nil {
		return err
	}
	changes, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	defer changes.Close()
	for until := time.Now().Add(carrierTimeout); ; {
		up, err := isUp(index, name)
		left := time.Until(until)
		if up || err != nil || left <= 0 {
			return err
		}
		timeout := unix.NsecToTimeval(left.Nanoseconds() + int64(time.Millisecond))
		if err := changes.SetReceiveTimeout(&timeout); err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		_, _, _ = changes.Receive() // any message, or an overflow, leads to another query
	}
}

// isUp reports whether a device can transmit.
func isUp(index int, name string) (bool, error) {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", name, err)
	}
	return link.Attrs().OperState == netlink.OperUp, nil
}

// The two ends of a pod's veth pair have permanent neighbour entries from the start. Otherwise the
// first packet triggers a neighbour query, for IPv6 to groups that the kernel joins later, on
// another thread: a query before that is lost and repeated after a second.

// podMAC and routerMAC return the hardware addresses of the pod's end and of the router's. They are
// locally administered (IEEE 802).
func podMAC(s ipam.Slot) []byte    { return []byte{0x02, 'p', 'o', 'd', byte(s >> 8), byte(s)} }
func routerMAC(s ipam.Slot) []byte { return []byte{0x02, 'p', 'o', 'd', 0x80 | byte(s>>8), byte(s)} }
