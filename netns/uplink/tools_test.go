package uplink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns"
)

// ping sends one echo request from a namespace and waits for its answer.
func ping(ns, to string) error {
	var file *os.File
	err := nsthread.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), "ping")
		return unix.Connect(fd, netns.SockAddr(netip.AddrPortFrom(netip.MustParseAddr(to), 0)))
	}, ns)
	if file == nil {
		return err
	}
	defer file.Close()
	if err != nil {
		return err
	}
	c, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte{8, 0, 0, 0, 0, 0, 0, 1, 'h', 'i'}); err != nil {
		return err
	}
	answer := make([]byte, 100)
	n, err := c.Read(answer)
	if err != nil {
		return err
	}
	if n < 10 || answer[n-2] != 'h' {
		return fmt.Errorf("the answer is % x", answer[:n])
	}
	return nil
}

// leadLoopbackOut leads 127.0.0.1 to a gateway, in the calling thread's network.
func leadLoopbackOut(gateway netip.Addr) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	rule := netlink.NewRule()
	rule.Family, rule.Table, rule.Priority = netlink.FAMILY_V4, 77, 1
	rule.Dst = network(netip.MustParsePrefix("127.0.0.1/32"))
	local := netlink.NewRule()
	local.Family, local.Table, local.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, 10
	own := netlink.NewRule()
	own.Family, own.Table, own.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, 0
	return errors.Join(
		netlink.RuleAdd(local), netlink.RuleDel(own), netlink.RuleAdd(rule),
		netlink.RouteAdd(&netlink.Route{Dst: rule.Dst, Table: 77, LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}))
}

// routeBy adds a route by a neighbour of the calling thread's network.
func routeBy(to, gateway string) error {
	return netlink.RouteAdd(&netlink.Route{Dst: network(netip.MustParsePrefix(to).Masked()), Gw: net.ParseIP(gateway)})
}

// tableNames are those of IPv4 in the host's network.
func tableNames() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	list, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names, err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
