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
	"github.com/podrun/podrun/internal/procfs"
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

// setUp brings up one end of the veth pair, in the calling thread's network, with its address. The address has link scope:
// the host does not advertise it as its own.
func setUp(device string, address netip.Addr) error {
	conf := "net/ipv4/conf/" + device
	if err := errors.Join(procfs.WriteSysctl(conf+"/forwarding", "1"), procfs.WriteSysctl(conf+"/route_localnet", "0")); err != nil {
		return err
	}
	return router.SetUpDevice(device, netip.PrefixFrom(address, bits), netlink.SCOPE_LINK)
}

// routeTo routes the router's outgoing packets to the other end. If that end disappears,
// destinations become unreachable.
func routeTo(device string, other netip.Addr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", device, err)
	}
	all := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
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
