package netns

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
)

// Attach connects a pod, by the path of its network namespace, to the router: the pod's
// eth0 has the addresses of its slot and the router as its gateway. Pods reach each other
// from now on. What an earlier try has left is replaced.
func (r Router) Attach(podNS string, pool Pool, s Slot) error {
	own := pool.Of(s)
	err := r.Do(func() error {
		err := attachRouter(podNS, pool, s, own)
		if err == nil {
			err = nsthread.VisitNetwork(podNS, func() error { return attachPod(pool, s, own) })
		}
		if err == nil {
			err = carries(s)
		}
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("attach the pod to the network: %w", err), r.Detach(s))
	}
	return nil
}

func attachRouter(podNS string, pool Pool, s Slot, own Addresses) error {
	ns, err := unix.Open(podNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", podNS, err)
	}
	defer unix.Close(ns)
	var b batch
	b.pair(end{firstPod + int(s), podLink(s), linkMAC(s)}, end{eth0, "eth0", podMAC(s)}, ns)
	if has(pool.V6) {
		b.address(firstPod+int(s), podLink(s), netip.PrefixFrom(netip.MustParseAddr(linkGateway), 64))
	}
	for _, a := range own.of(pool) {
		b.route(fmt.Sprintf("add route to %s", a), way{to: host(a), link: firstPod + int(s), scope: unix.RT_SCOPE_LINK})
		b.neighbour(firstPod+int(s), a, podMAC(s))
	}
	err = b.send()
	if errors.Is(err, unix.EEXIST) { // an earlier life's, which may be going by itself
		if err = remove(podLink(s)); err == nil || errors.Is(err, unix.ENODEV) {
			err = b.send()
		}
	}
	if err != nil {
		return err
	}
	return sysctl("net/ipv4/conf/"+podLink(s)+"/rp_filter", "1")
}

// segments is how large what a device sends may be before it is cut in pieces of its MTU:
// four of them (BIG TCP). What a packet costs on its way is paid a quarter as often. Of
// IPv4: IPv6 needs a header more for it, which programs that look at packets may not know.
const segments = 4 * 66 << 10

// end is one of a pair of devices.
type end struct {
	index int
	name  string
	mac   []byte
}

// pair makes two devices that are each other's other end: the router's, which is up, and the
// pod's, in the network of a file. Kernels before 6.3 pass over what they do not know of segments.
func (b *batch) pair(router, pod end, podNS int) {
	mtu, queue := attribute(unix.IFLA_MTU, nl.Uint32Attr(MTU)), attribute(unix.IFLA_TXQLEN, nl.Uint32Attr(0))
	big := attribute(unix.IFLA_GSO_IPV4_MAX_SIZE, nl.Uint32Attr(segments))
	peer := attribute(nl.VETH_INFO_PEER, nil)
	for _, d := range []nl.NetlinkRequestData{link(pod.index, false), attribute(unix.IFLA_IFNAME, nl.ZeroTerminated(pod.name)), attribute(unix.IFLA_ADDRESS, pod.mac),
		mtu, queue, big, attribute(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(podNS)))} {
		peer.AddChild(d)
	}
	info := attribute(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("veth"))
	info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddChild(peer)
	b.add(part{what: "make the pod's device"}, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		link(router.index, true), attribute(unix.IFLA_IFNAME, nl.ZeroTerminated(router.name)), attribute(unix.IFLA_ADDRESS, router.mac), mtu, queue, big, info)
}

// remove removes a device.
func remove(name string) error {
	var b batch
	b.add(part{what: "remove " + name}, unix.RTM_DELLINK, 0, link(0, false), attribute(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	return b.send()
}

// Usable are the addresses of a pod that this kernel can use.
func (p Pool) Usable(s Slot) []netip.Addr { return p.Of(s).of(p) }

func (a Addresses) of(p Pool) []netip.Addr {
	if has(p.V6) {
		return []netip.Addr{a.V4, a.V6}
	}
	return []netip.Addr{a.V4}
}

func attachPod(pool Pool, s Slot, own Addresses) error {
	if err := sysctl("net/ipv6/conf/eth0/accept_dad", "0"); err != nil {
		return err
	}
	unpace()
	var b batch
	for _, a := range own.of(pool) {
		b.address(eth0, "eth0", host(a))
	}
	b.bringUp(eth0, "eth0")
	for _, a := range own.of(pool) {
		gateway := pool.Gateway().V4
		if a.Is6() {
			gateway = netip.MustParseAddr(linkGateway)
			// The kernel's own comes later, from a thread of its own: until then answers are lost.
			b.route("add the route to itself", way{to: host(a), kind: unix.RTN_LOCAL, scope: unix.RT_SCOPE_HOST, link: eth0, table: unix.RT_TABLE_LOCAL})
		}
		b.route(fmt.Sprintf("add the default route by %s", gateway), way{to: everything(a), link: eth0, by: gateway, from: a})
		b.neighbour(eth0, gateway, linkMAC(s))
	}
	return b.send()
}

// Detach takes back what Attach and Wire have made of pods in the router; what is not
// there needs not be. It takes the kernel tens of milliseconds.
func (r Router) Detach(gone ...Slot) error {
	err := r.Do(func() error {
		var errs []error
		all := map[Slot]bool{}
		for _, s := range gone {
			all[s] = true
			for _, name := range []string{podLink(s), tunLink(s)} {
				if link, err := netlink.LinkByName(name); err == nil {
					errs = append(errs, netlink.LinkDel(link))
				}
			}
			errs = append(errs, delRules(s))
		}
		return errors.Join(append(errs, delTables(all))...)
	})
	if err != nil {
		return fmt.Errorf("detach from the network: %w", err)
	}
	return nil
}

// delRules removes what directs a pod's packets to its TUN device, and keepSource6's.
func delRules(s Slot) error {
	for _, rule := range append(sourceRules6(s), egressRule(s, netlink.FAMILY_V4), egressRule(s, netlink.FAMILY_V6)) {
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

func egressRule(s Slot, family int) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.IifName, rule.Table, rule.Priority = family, podLink(s), firstTable+int(s), egressPref
	return rule
}

// Sweep detaches pods that have gone without it: their devices went with their namespace.
func (r Router) Sweep(taken map[Slot]bool) error {
	var gone []Slot
	err := r.Do(func() error {
		rules, err := netlink.RuleList(netlink.FAMILY_V4)
		for _, rule := range rules {
			if s := Slot(rule.Table - firstTable); rule.Priority == egressPref && s >= 1 && s <= Slots && !taken[s] {
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
