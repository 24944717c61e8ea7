package router

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/procfs"
)

// NodeDevice is the device that leads from the network of a node to its pods, whose addresses are routed. It is one
// end of a veth pair; the other end takes the place of the tunnel in the router (SetPeers).
const NodeDevice = "podrun-pods"

// nodeMAC is the hardware address of both ends. They do not use ARP, so a packet's destination is the address of
// the device that sends it: neither the router nor the node needs a neighbour entry for each pod.
var nodeMAC = []byte{0x02, 'p', 'o', 'd', 0xff, 0xff}

const ipForward = "net/ipv4/ip_forward"

// ConnectNode connects the router with the calling thread's network, in which this node has an address, and routes
// packets for the networks of its pods there. It makes what is missing; made reports that it made the pair of devices, after
// which SetPeers must follow.
func (r Router) ConnectNode(node netip.Addr, networks []netip.Prefix) (made bool, err error) {
	if made, err = r.pairNode(); err == nil {
		err = setUpNodeDevice(node, networks)
	}
	if made && err == nil {
		err = r.Do(func() error { return waitForCarrier(tunnelIndex, tunnelLink) })
	}
	if err != nil {
		return made, fmt.Errorf("connect the pods with the network of the node: %w", err)
	}
	return made, nil
}

// pairNode makes the pair of devices, unless there is one.
func (r Router) pairNode() (made bool, err error) {
	link, err := netlink.LinkByName(NodeDevice)
	missing := errors.As(err, new(netlink.LinkNotFoundError))
	if err != nil && !missing {
		return false, fmt.Errorf("find %s: %w", NodeDevice, err)
	}
	host, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("open the network of the node: %w", err)
	}
	defer unix.Close(host)
	var paired bool
	if err := r.Do(func() error {
		other, err := netlink.LinkByIndex(tunnelIndex)
		paired = err == nil && other.Type() == "veth"
		return nil
	}); err != nil || paired && !missing {
		return false, err
	}
	if !missing { // it leads to a router that is ending
		if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
			return false, fmt.Errorf("remove %s: %w", NodeDevice, err)
		}
	}
	return true, r.Do(func() error {
		var b nlbatch.Batch
		addVeth(&b, vethEnd{tunnelIndex, tunnelLink, nodeMAC}, vethEnd{0, NodeDevice, nodeMAC}, host)
		if err := b.Send(); err != nil {
			return err
		}
		return setARPOff(tunnelLink)
	})
}

// setARPOff makes a device of the calling thread's network send packets without a query for the neighbour.
func setARPOff(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetARPOff(link)
	}
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// setUpNodeDevice sets up the node's end of the pair, in the calling thread's network.
func setUpNodeDevice(node netip.Addr, networks []netip.Prefix) error {
	if err := setARPOff(NodeDevice); err != nil {
		return err
	}
	for _, s := range [][2]string{{"net/ipv6/conf/" + NodeDevice + "/disable_ipv6", "1"}, {"net/ipv4/conf/" + NodeDevice + "/forwarding", "1"}} {
		if err := procfs.WriteSysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	if b, err := os.ReadFile("/proc/sys/" + ipForward); err != nil || strings.TrimSpace(string(b)) != "1" {
		if err := procfs.WriteSysctl(ipForward, "1"); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName(NodeDevice)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("bring up %s: %w", NodeDevice, err)
	}
	var b nlbatch.Batch
	for _, p := range networks {
		b.AddRoute(fmt.Sprintf("add route to the pods' network %s", p), nlbatch.Route{Dst: p, Link: link.Attrs().Index, Scope: unix.RT_SCOPE_LINK, Src: node, Protocol: peerProtocol})
	}
	if err := b.Send(); err != nil {
		return err
	}
	return waitForCarrier(link.Attrs().Index, NodeDevice)
}

// NodeRoute leads to the pods of another node.
type NodeRoute struct {
	Network netip.Prefix
	Node    netip.Addr
}

// RouteNodes routes packets of the calling thread's network for the pods of other nodes to these nodes, with the
// address of this node as their source, and removes the routes of former calls. Packets for the networks of this
// node's pods have no other way than NodeDevice. The error is of the routes that could not be made; the other ones exist.
func RouteNodes(node netip.Addr, networks []netip.Prefix, others []NodeRoute) error {
	var errs []error
	keep := slices.Clone(networks)
	for _, p := range networks {
		if err := netlink.RouteReplace(&netlink.Route{Dst: toIPNet(p), Type: unix.RTN_UNREACHABLE, Priority: nobodyPriority, Protocol: peerProtocol}); err != nil {
			errs = append(errs, fmt.Errorf("add route to %s: %w", p, err))
		}
	}
	for _, o := range others {
		keep = append(keep, o.Network)
		if err := netlink.RouteReplace(&netlink.Route{Dst: toIPNet(o.Network), Gw: o.Node.AsSlice(), Src: node.AsSlice(), Protocol: peerProtocol}); err != nil {
			errs = append(errs, fmt.Errorf("add route to %s by node %s: %w", o.Network, o.Node, err))
		}
	}
	return errors.Join(append(errs, removeRoutes(keep))...)
}

// DisconnectNode removes from the calling thread's network what ConnectNode and RouteNodes have made.
func DisconnectNode() error {
	err := deleteLink(NodeDevice)
	if errors.Is(err, unix.ENODEV) {
		err = nil
	}
	return errors.Join(err, removeRoutes(nil))
}
