// Package nodes connects the nodes of a cluster that runs in one pod. All are on a bridge in the pod's network. The first
// node uses that network; each of the others has one of its own.
package nodes

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/netns/router"
)

// Last is the largest number of a node. The smallest is 1.
const Last = 254

// bridge is the name of the bridge, and of the table of nftables with its rules.
const bridge = "nodes"

var network = netip.MustParsePrefix("10.87.0.0/24")

// Address returns the address of a node. The bridge has the first node's.
func Address(node int) netip.Addr { return netip.AddrFrom4([4]byte{10, 87, 0, byte(node)}) }

// hardwareAddress returns the one of a node's device, which stays when the node starts again.
func hardwareAddress(node int) []byte { return []byte{0x02, 'n', 'o', 'd', 'e', byte(node)} }

// Enter moves the calling thread to the network of a node, and makes what is missing: see prepare and join.
func Enter(node int) error {
	if err := prepare(); err != nil || node == 1 {
		return err
	}
	return join(node)
}

// prepare makes the bridge in the calling thread's network, or what it lacks. Packets from nodes leave that network with
// its own address.
func prepare() error {
	err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge, MTU: router.MTU, HardwareAddr: hardwareAddress(1), TxQLen: 1000}})
	if err == nil || errors.Is(err, unix.EEXIST) {
		err = setUp(bridge, 1)
	}
	for _, s := range [][2]string{{"net/ipv4/ip_forward", "1"}, {"net/bridge/bridge-nf-call-iptables", "0"}} {
		if err == nil {
			err = procfs.WriteSysctl(s[0], s[1])
		}
	}
	if err == nil {
		err = masquerade()
	}
	if err != nil {
		return fmt.Errorf("make the network of the nodes: %w", err)
	}
	return nil
}

// setUp brings up a device of the calling thread's network with the address of a node.
func setUp(device string, node int) error {
	return router.SetUpDevice(device, netip.PrefixFrom(Address(node), network.Bits()), netlink.SCOPE_UNIVERSE)
}

// masquerade adds the rules, unless there are some.
func masquerade() error {
	there, err := nft.ListTables(nftables.TableFamilyIPv4, func(name string) bool { return name == bridge })
	if err != nil || len(there) > 0 {
		return err
	}
	err = nft.Transact(func(c *nftables.Conn) error {
		t := nft.Table{Conn: c, Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: bridge}}
		c.CreateTable(t.Table)
		leave := t.AddChain("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
		t.AddRule(leave, nft.IPv4.MatchSource(network, expr.CmpOpEq), nft.MatchOutputDevice(bridge, expr.CmpOpNeq),
			nft.MatchOutputDevice(router.NodeDevice, expr.CmpOpNeq), nft.MatchOutputDevice("lo", expr.CmpOpNeq), []expr.Any{&expr.Masq{}})
		return nil
	})
	if errors.Is(err, unix.EEXIST) { // another node has made it
		return nil
	}
	return err
}

// join moves the calling thread, which must not run anything else afterwards but a program that it executes, to a new
// network with the address of a node, on the bridge of its former network, and to a new mount namespace, where /sys belongs to
// that network. What is left of the node's former network disappears.
func join(node int) error {
	err := enterNetwork(node)
	if err == nil {
		err = mountSys()
	}
	if err != nil {
		return fmt.Errorf("make the network of node %d: %w", node, err)
	}
	return nil
}

func enterNetwork(node int) error {
	outside, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer outside.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare the network: %w", err)
	}
	inside, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := unix.Setns(int(outside.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("go back to the former network: %w", err)
	}
	if err := connect(node, inside); err != nil {
		return err
	}
	if err := unix.Setns(int(inside.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network: %w", err)
	}
	if err := setUp(device, node); err != nil {
		return err
	}
	var b nlbatch.Batch
	b.SetUp(nlbatch.LoopbackIndex, "loopback")
	if err := b.Send(); err != nil {
		return err
	}
	route := &netlink.Route{Gw: Address(1).AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	return nil
}

// device is the name of the device in the network of a node.
const device = "eth0"

// connect makes the pair of devices that connects the bridge with the network of a node, in place of a former one.
func connect(node int, inside *os.File) error {
	to, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("find the device %s: %w", bridge, err)
	}
	name := fmt.Sprintf("node%d", node)
	if old, err := netlink.LinkByName(name); err == nil {
		if err := netlink.LinkDel(old); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MTU: router.MTU, MasterIndex: to.Attrs().Index},
		PeerName:  device, PeerNamespace: netlink.NsFd(inside.Fd()), PeerHardwareAddr: hardwareAddress(node), PeerTxQLen: -1,
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the device %s: %w", name, err)
	}
	if err := procfs.WriteSysctl("net/ipv6/conf/"+name+"/disable_ipv6", "1"); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(pair); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}

// mountSys mounts a /sys that shows the calling thread's network. The cgroups stay.
func mountSys() error {
	const sys, cgroups = "/sys", "/sys/fs/cgroup"
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, cgroups, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("take the mounts of %s: %w", cgroups, err)
	}
	defer unix.Close(tree)
	if err := unix.Mount("sysfs", sys, "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", sys, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, cgroups, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", cgroups, err)
	}
	return nil
}
