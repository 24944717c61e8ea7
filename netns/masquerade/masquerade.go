// Package masquerade leads what the pods of a user say to the world by the kernel alone: a pair
// of devices joins their router with the host's network, and what leaves has first the
// router's address there, then the host's own (masquerade). Only who administers the host's
// network can do that: root. It is for IPv4.
//
// The host's network is the calling thread's, of all functions here.
//
// The devices go with the router, that is with the last pod, by themselves. The rules in
// the host's network stay when everybody is killed: they speak of the device alone, and who
// makes another uplink removes them.
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

// maxDevices is how many there may be: one for each router.
const maxDevices = 16

// hostDevice names the device of uplink n in the host's network, inner its other end, in the
// router.
func hostDevice(n int) string   { return fmt.Sprintf("podrun%d", n) }
func routerDevice(n int) string { return fmt.Sprintf("uplink%d", n) }

// linkAddresses are the addresses of an uplink, in the host's network and in the router: of those
// that are good for one link alone.
func linkAddresses(n int) (host, router netip.Addr) {
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 88, byte(4*n + i)}) }
	return at(1), at(2)
}

// Ensure makes the uplink of a router that is prepared, or what is lacking of it, unless Check
// has something against it, and tells the size of the largest packet that passes all of the
// host's devices. One process at a time does that: the caller holds a lock.
func Ensure(r router.Router) (mtu int, err error) {
	if err := Check(); err != nil {
		return 0, err
	}
	made, err := ensure(r)
	if err == nil {
		mtu, err = smallestMTU()
	}
	if err != nil && made { // else others rely on it
		err = errors.Join(err, Remove(r))
	}
	return mtu, err
}

// Repair makes what is lacking of a router's uplink, on which pods rely.
func Repair(r router.Router) error {
	_, err := ensure(r)
	return err
}

// ensure says whether there was no uplink before.
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
		err = fmt.Errorf("lead pods out by the kernel: %w", err)
	}
	return made, err
}

// Remove removes a router's uplink, if it has one, and its rules in the host's network.
// Those in the router go with that.
func Remove(r router.Router) error {
	n, err := find(r)
	if err == nil && n >= 0 {
		err = ignoreNotFound(deleteLink(hostDevice(n)))
	}
	if err == nil {
		err = removeStaleTables()
	}
	if err != nil {
		return fmt.Errorf("remove the pods' way out: %w", err)
	}
	return nil
}

// find gives the number of the router's uplink, -1 if it has none. The two ends are always
// there together.
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

// ignoreNotFound makes nothing of the error that there is no such device.
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
		// With an address of its own choice udev would give it another.
		own := append(net.HardwareAddr{2, 88}, host.AsSlice()...)
		err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: hostDevice(n), MTU: router.MTU, HardwareAddr: own, TxQLen: 0},
			PeerName:  routerDevice(n), PeerNamespace: netlink.NsFd(ns.Fd()), PeerTxQLen: -1,
		})
		if errors.Is(err, unix.EEXIST) {
			continue // another router's
		}
		if err != nil {
			return -1, fmt.Errorf("make the device %s: %w", hostDevice(n), err)
		}
		return n, nil
	}
	return -1, fmt.Errorf("all of the devices %s to %s are others'", hostDevice(0), hostDevice(maxDevices-1))
}

// inUse says whether anything of the host's has an uplink's addresses. A route to all
// addresses of the kind means nothing: many hosts have one.
func inUse(n int) (bool, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return false, fmt.Errorf("list the host's routes: %w", err)
	}
	host, _ := linkAddresses(n)
	own := netip.PrefixFrom(host, bits).Masked()
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		to, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		if long, _ := r.Dst.Mask.Size(); ok && long > 16 && netip.PrefixFrom(to, long).Overlaps(own) {
			return true, nil
		}
	}
	return false, nil
}

// bits is the length of an uplink's network.
const bits = 30

// smallestMTU is the smallest MTU of the host's devices that lead somewhere, which packets of
// pods are never longer than: what is longer would be lost now and then, until the kernel
// had told the pod.
func smallestMTU() (int, error) {
	const smallest, usual = 576, 1500 // RFC 791, Ethernet's
	devices, err := net.Interfaces()
	if err != nil {
		return 0, fmt.Errorf("list the host's devices: %w", err)
	}
	mtu := 0
	for _, d := range devices {
		var n int
		own, _ := fmt.Sscanf(d.Name, "podrun%d", &n)
		if own == 1 || d.Flags&net.FlagUp == 0 || d.Flags&net.FlagLoopback != 0 || d.MTU < smallest {
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
