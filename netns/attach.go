package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Attach connects a pod, by the path of its network namespace, to the router: the pod's
// eth0 has the addresses of its slot and the router as its gateway. Pods reach each other
// from now on. What an earlier try has left is replaced.
func (r Router) Attach(podNS string, pool Pool, s Slot) error {
	own := pool.Of(s)
	err := within(r.path, func(h *netlink.Handle) error { return attachRouter(h, podNS, pool, s, own) })
	if err == nil {
		err = within(podNS, func(h *netlink.Handle) error { return attachPod(h, pool, own) })
	}
	if err != nil {
		return errors.Join(fmt.Errorf("attach the pod to the network: %w", err), r.Detach(s))
	}
	return nil
}

func attachRouter(h *netlink.Handle, podNS string, pool Pool, s Slot, own Addresses) error {
	ns, err := os.Open(podNS)
	if err != nil {
		return err
	}
	defer ns.Close()
	name := podLink(s)
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: MTU}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.Fd())}
	err = h.LinkAdd(veth)
	if errors.Is(err, unix.EEXIST) { // an earlier life's
		if err = h.LinkDel(veth); err == nil {
			err = h.LinkAdd(veth)
		}
	}
	if err != nil {
		return fmt.Errorf("make the pod's device: %w", err)
	}
	if err := sysctl("net/ipv4/conf/"+name+"/rp_filter", "1"); err != nil {
		return err
	}
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	if has(pool.V6) {
		gateway := netip.MustParseAddr(linkGateway)
		if err := h.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(gateway, 64)), Flags: nodad(gateway)}); err != nil {
			return fmt.Errorf("add address %s to %s: %w", gateway, name, err)
		}
	}
	for _, a := range own.of(pool) {
		to := ipNet(netip.PrefixFrom(a, a.BitLen()))
		if err := h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("add route to %s: %w", a, err)
		}
	}
	return nil
}

// Usable are the addresses of a pod that this kernel can use.
func (p Pool) Usable(s Slot) []netip.Addr { return p.Of(s).of(p) }

func (a Addresses) of(p Pool) []netip.Addr {
	if has(p.V6) {
		return []netip.Addr{a.V4, a.V6}
	}
	return []netip.Addr{a.V4}
}

func attachPod(h *netlink.Handle, pool Pool, own Addresses) error {
	if err := sysctl("net/ipv6/conf/eth0/accept_dad", "0"); err != nil {
		return err
	}
	eth, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	for _, a := range own.of(pool) {
		if err := addAddress(h, eth, a); err != nil {
			return err
		}
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("bring up eth0: %w", err)
	}
	for _, a := range own.of(pool) {
		gateway := pool.Gateway().V4
		if a.Is6() {
			gateway = netip.MustParseAddr(linkGateway)
		}
		route := &netlink.Route{
			LinkIndex: eth.Attrs().Index, Dst: ipNet(netip.PrefixFrom(unspecified(a), 0)),
			Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK), Src: a.AsSlice(),
		}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("add the default route by %s: %w", gateway, err)
		}
	}
	return nil
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

// delRules removes what directs a pod's packets to its TUN device.
func delRules(s Slot) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		for {
			err := netlink.RuleDel(egressRule(s, family))
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
