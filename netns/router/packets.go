package router

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/ipam"
)

// TrafficPackets is the only descriptor in packet mode, where the kernel handles nothing: it
// carries all of the pod's packets, each after a struct virtio_net_hdr (linux/virtio_net.h).
const TrafficPackets = "packets"

// packetModeSuffix is in the name of the table of a pod in packet mode.
const packetModeSuffix = "own"

// OpenPackets is OpenTraffic with TrafficPackets alone. Of the kernel it needs only a TUN device.
func (r Router) OpenPackets(pool ipam.Pool, s ipam.Slot) (TrafficFDs, error) {
	w := TrafficFDs{}
	err := r.Do(func() error {
		tun, err := openTUN(s, unix.IFF_VNET_HDR)
		if err != nil {
			return err
		}
		w[TrafficPackets] = tun
		// The rules of an earlier pod in this slot would take packets away.
		if err := dropSpoofed(pool, s); err != nil {
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
		return routeToTUN(pool, s)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward the pod's traffic: %w", err), w.Close())
	}
	return w, nil
}

// dropSpoofed drops the pod's packets with foreign source addresses.
func dropSpoofed(pool ipam.Pool, s ipam.Slot) error {
	err := createTable(s, packetModeSuffix, nil, packetModeRules(s, pool, pool.Addresses(s)))
	if slices.ContainsFunc(errsWithoutTables, func(e error) bool { return errors.Is(err, e) }) {
		return dropSpoofed6(pool, s)
	}
	return err
}

// errsWithoutTables are the errors of a kernel without nf_tables or without the expressions that
// the rules use.
var errsWithoutTables = []error{unix.ENOENT, unix.EOPNOTSUPP, unix.EPERM, unix.EINVAL, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT}

// Preferences of the rules of dropSpoofed6, which precede the main table: ip-rule(8).
const (
	ownPref, othersPref = 200, 201
	mainPref            = 32766
)

// dropSpoofed6 is dropSpoofed with routing rules, for IPv6; for IPv4 there is rp_filter. Packets
// for the link and for the router itself are routed before.
func dropSpoofed6(pool ipam.Pool, s ipam.Slot) error {
	if !supported(pool.V6) {
		return nil
	}
	for _, r := range spoofRules6(s) {
		if r.Goto >= 0 {
			addresses := pool.Addresses(s).V6
			r.Src = &net.IPNet{IP: addresses.AsSlice(), Mask: net.CIDRMask(addresses.BitLen(), addresses.BitLen())}
		}
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add a rule for what comes from %s: %w", podLink(s), err)
		}
	}
	return nil
}

// spoofRules6 returns the rules of dropSpoofed6, independent of the address.
func spoofRules6(s ipam.Slot) []*netlink.Rule {
	ours, others := netlink.NewRule(), netlink.NewRule()
	ours.Priority, ours.Goto = ownPref, mainPref
	others.Priority, others.Type = othersPref, unix.RTN_PROHIBIT
	for _, r := range []*netlink.Rule{ours, others} {
		r.Family, r.IifName = netlink.FAMILY_V6, podLink(s)
	}
	return []*netlink.Rule{ours, others}
}
