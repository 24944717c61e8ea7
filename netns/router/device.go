package router

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/podrun/podrun/internal/procfs"
)

// SetUpDevice brings up a device of the calling thread's network with an IPv4 address, and without IPv6.
func SetUpDevice(name string, address netip.Prefix, scope netlink.Scope) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", name, err)
	}
	if err := procfs.WriteSysctl("net/ipv6/conf/"+name+"/disable_ipv6", "1"); err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: toIPNet(address), Scope: int(scope)}); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address.Addr(), name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}
