package masquerade

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/netns/router"
)

// configure adds what is missing at both ends of the veth pair with number n: addresses, routes, rules,
// sysctls. It keeps what exists.
func configure(r router.Router, n int) error {
	hostAddr, routerAddr := linkAddresses(n)
	err := r.Do(func() error {
		return errors.Join(setUp(routerDevice(n), routerAddr), routeTo(routerDevice(n), hostAddr), routerRules(n, routerAddr))
	})
	if err == nil {
		err = hostRules(n, routerAddr) // before the first packet can arrive
	}
	if err == nil {
		err = setUp(hostDevice(n), hostAddr)
	}
	if b, rerr := os.ReadFile(ipForward); err == nil && (rerr != nil || strings.TrimSpace(string(b)) != "1") {
		err = os.WriteFile(ipForward, []byte("1"), 0)
	}
	return err
}

// setUp brings up one end of the veth pair, in the calling thread's network, with the address podAddress.
func setUp(device string, podAddress netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", device, err)
	}
	for _, s := range [][2]string{
		{"ipv4/conf/" + device + "/forwarding", "1"},
		{"ipv4/conf/" + device + "/route_localnet", "0"},
		{"ipv6/conf/" + device + "/disable_ipv6", "1"},
	} {
		if err := setSysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	// The address has link scope: the host does not advertise it as its own.
	address := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(podAddress, bits)), Scope: unix.RT_SCOPE_LINK}
	if err := netlink.AddrReplace(link, address); err != nil {
		return fmt.Errorf("add address %s to %s: %w", podAddress, device, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", device, err)
	}
	return nil
}

// routeTo routes the router's outgoing packets to the other end. If that end disappears,
// destinations become unreachable.
func routeTo(device string, other netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", device, err)
	}
	all := ipNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
	for _, route := range []*netlink.Route{
		{Dst: all, Table: router.MasqueradeTable, Type: unix.RTN_UNREACHABLE, Priority: 9999},
		{Dst: all, Table: router.MasqueradeTable, LinkIndex: link.Attrs().Index, Gw: other.AsSlice()},
	} {
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("add the route by %s: %w", device, err)
		}
	}
	rule := netlink.NewRule()
	rule.Family, rule.Mark, rule.Table, rule.Priority = netlink.FAMILY_V4, nft.MasqueradeMark, router.MasqueradeTable, router.MasqueradePref
	if err := netlink.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add the rule for %s: %w", device, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// setSysctl sets a sysctl of the calling thread's network. A sysctl that this kernel lacks is
// skipped.
func setSysctl(name, value string) error {
	err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set net.%s: %w", strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}
