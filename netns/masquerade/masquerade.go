// Package masquerade routes the outgoing traffic of a user's pods through the kernel alone: a pair
// of devices joins their router with the host's network, and outgoing packets get first the
// router's address there, then the host's own (masquerade). Only a process that administers the
// host's network can do that: root. It supports IPv4 only.
//
// For all functions here the host's network is the calling thread's.
//
// The devices disappear with the router, that is with the last pod. The rules in the host's network
// stay when all processes are killed: they match the device alone, and the process that makes the
// next masquerade device removes them.
package masquerade

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/router"
)

// maxDevices is the maximum number of masquerade devices: one for each router.
const maxDevices = 16

// hostDevice returns the name of the device of masquerade device n in the host's network; routerDevice returns
// the name of its other end, in the router.
func hostDevice(n int) string   { return fmt.Sprintf("podrun%d", n) }
func routerDevice(n int) string { return fmt.Sprintf("uplink%d", n) }

// linkAddresses returns the addresses of a masquerade device in the host's network and in the router. They
// are link-local.
func linkAddresses(n int) (host, router netip.Addr) {
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 88, byte(4*n + i)}) }
	return address(1), address(2)
}

// Ensure makes the masquerade device of a prepared router, or its missing parts, unless Check returns an
// error. It returns the size of the largest packet that passes all of the host's devices. The
// caller holds a lock, so that one process at a time runs it.
func Ensure(r router.Router) (mtu int, err error) {
	if err := Check(); err != nil {
		return 0, err
	}
	made, err := ensure(r)
	if err == nil {
		mtu, err = smallestMTU()
	}
	if err != nil && made { // an existing masquerade device is in use by other pods
		err = errors.Join(err, Remove(r))
	}
	return mtu, err
}

// Repair makes the missing parts of a router's masquerade device that pods rely on.
func Repair(r router.Router) error {
	_, err := ensure(r)
	return err
}

// ensure also reports whether it has made the masquerade device.
func ensure(r router.Router) (made bool, err error) {
	n, err := find(r)
	if err == nil && n < 0 {
		n, err = createPair(r)
		made = err == nil
	}
	if err == nil {
		err = configure(r, n)
	}
	if err != nil {
		err = fmt.Errorf("set up masquerade: %w", err)
	}
	return made, err
}

// Remove removes a router's masquerade device, if it has one, and its rules in the host's network. The rules
// in the router disappear with the router.
func Remove(r router.Router) error {
	n, err := find(r)
	if err == nil && n >= 0 {
		err = ignoreNotFound(deleteLink(hostDevice(n)))
	}
	if err == nil {
		err = removeStaleTables()
	}
	if err != nil {
		return fmt.Errorf("remove masquerade: %w", err)
	}
	return nil
}

// find returns the number of the router's masquerade device, -1 if it has none. The two ends always exist
// together.
func find(r router.Router) (n int, err error) {
	err = r.Do(func() error {
		for n = range maxDevices {
			if there, err := exists(routerDevice(n)); err != nil || there {
				return err
			}
		}
		n = -1
		return nil
	})
	return n, err
}

// deleteLink removes a device of the calling thread's network.
func deleteLink(device string) error {
	link, err := netlink.LinkByName(device)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	return err
}

func exists(device string) (bool, error) {
	_, err := netlink.LinkByName(device)
	return err == nil, ignoreNotFound(err)
}

// ignoreNotFound returns nil for the error that a device does not exist.
func ignoreNotFound(err error) error {
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// createPair makes the pair of devices.
func createPair(r router.Router) (int, error) {
	var ns *os.File
	err := r.Do(func() (err error) { ns, err = os.Open("/proc/thread-self/ns/net"); return err })
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	for n := range maxDevices {
		if taken, err := inUse(n); err != nil {
			return -1, err
		} else if taken {
			continue
		}
		host, _ := linkAddresses(n)
		// udev would replace an address that the kernel has chosen.
		hardware := append(net.HardwareAddr{2, 88}, host.AsSlice()...)
		err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: hostDevice(n), MTU: router.MTU, HardwareAddr: hardware, TxQLen: 0},
			PeerName:  routerDevice(n), PeerNamespace: netlink.NsFd(ns.Fd()), PeerTxQLen: -1,
		})
		if errors.Is(err, unix.EEXIST) {
			continue // used by another router
		}
		if err != nil {
			return -1, fmt.Errorf("make the device %s: %w", hostDevice(n), err)
		}
		return n, nil
	}
	return -1, fmt.Errorf("all of the devices %s to %s are in use", hostDevice(0), hostDevice(maxDevices-1))
}

// inUse reports whether a route or an address of the host overlaps a masquerade device's addresses. A default
// route to all addresses of that kind does not count: many hosts have one.
func inUse(n int) (bool, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return false, fmt.Errorf("list the host's routes: %w", err)
	}
	host, _ := linkAddresses(n)
	networks := netip.PrefixFrom(host, bits).Masked()
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		to, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		if long, _ := r.Dst.Mask.Size(); ok && long > 16 && netip.PrefixFrom(to, long).Overlaps(networks) {
			return true, nil
		}
	}
	return false, nil
}

// bits is the prefix length of a masquerade device's network.
const bits = 30

// smallestMTU returns the smallest MTU of the host's devices that routes lead to. Pods' packets are
// never longer: longer ones would be lost occasionally, until the kernel had reported the path MTU
// to the pod.
func smallestMTU() (int, error) {
	const smallest, usual = 576, 1500 // RFC 791, Ethernet's
	devices, err := net.Interfaces()
	if err != nil {
		return 0, fmt.Errorf("list the host's devices: %w", err)
	}
	mtu := 0
	for _, d := range devices {
		var n int
		matched, _ := fmt.Sscanf(d.Name, "podrun%d", &n)
		if matched == 1 || d.Flags&net.FlagUp == 0 || d.Flags&net.FlagLoopback != 0 || d.MTU < smallest {
			continue
		}
		if mtu == 0 || d.MTU < mtu {
			mtu = d.MTU
		}
	}
	if mtu == 0 {
		mtu = usual
	}
	return mtu, nil
}
