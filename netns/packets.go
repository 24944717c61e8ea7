package netns

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// WirePackets is the only wire where the kernel takes nothing by itself: all of the pod's
// packets, each after a header of struct virtio_net_hdr (linux/virtio_net.h).
const WirePackets = "packets"

// ownSuffix is in the name of the table of a pod with that wire.
const ownSuffix = "own"

// WirePackets is Wire with that wire alone. It takes no more of the kernel than a TUN
// device.
func (r Router) WirePackets(pool Pool, s Slot) (Wires, error) {
	w := Wires{}
	err := r.Do(func() error {
		tun, err := openTUN(s, unix.IFF_VNET_HDR)
		if err != nil {
			return err
		}
		w[WirePackets] = tun
		// In place of an earlier pod's: what its rules take would not come.
		if err := keepSource(pool, s); err != nil {
			return err
		}
		raw, err := tun.SyscallConn()
		if err == nil {
			cerr := raw.Control(func(fd uintptr) {
				err = unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4|unix.TUN_F_TSO6)
			})
			err = errors.Join(err, cerr)
		}
		if err != nil {
			return fmt.Errorf("leave segmentation to the TUN device: %w", err)
		}
		return direct(pool, s)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("carry the pod's traffic: %w", err), w.Close())
	}
	return w, nil
}

// keepSource keeps the pod from speaking in the name of others.
func keepSource(pool Pool, s Slot) error {
	err := addTable(s, ownSuffix, nil, sourceRules(s, pool, pool.Of(s)))
	if slices.ContainsFunc(noTables, func(e error) bool { return errors.Is(err, e) }) {
		return keepSource6(pool, s)
	}
	return err
}

// noTables are what a kernel without nf_tables, or without what the rules are made of, has
// to say.
var noTables = []error{unix.ENOENT, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT}

// Preferences of the rules of keepSource6, before the main table's: ip-rule(8).
const (
	ownPref, othersPref = 200, 201
	mainPref            = 32766
)

// keepSource6 is keepSource by rules of routing, of IPv6: for IPv4 there is rp_filter. What
// is for the link, and for the router itself, is routed before.
func keepSource6(pool Pool, s Slot) error {
	if !has(pool.V6) {
		return nil
	}
	for _, r := range sourceRules6(s) {
		if r.Goto >= 0 {
			own := pool.Of(s).V6
			r.Src = &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(own.BitLen(), own.BitLen())}
		}
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add a rule for what comes from %s: %w", podLink(s), err)
		}
	}
	return nil
}

// sourceRules6 are the rules of keepSource6, for whatever address.
func sourceRules6(s Slot) []*netlink.Rule {
	own, others := netlink.NewRule(), netlink.NewRule()
	own.Priority, own.Goto = ownPref, mainPref
	others.Priority, others.Type = othersPref, unix.RTN_PROHIBIT
	for _, r := range []*netlink.Rule{own, others} {
		r.Family, r.IifName = netlink.FAMILY_V6, podLink(s)
	}
	return []*netlink.Rule{own, others}
}
