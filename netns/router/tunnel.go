package router

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/netns/ipam"
)

// The tunnel is a TUN device that leads to the pods of other nodes of a cluster (netns/wireguard). The
// process that has it open is not one of a pod. ConnectNode has another device in its place.
const (
	tunnelLink  = "tunnel"
	tunnelIndex = 3 << 16 // not a pod's: its low half is no slot

	peerProtocol = 112 // of the routes of SetPeers and RouteNodes (rtm_protocol): no other software's in /etc/iproute2/rt_protos
	peersTable   = "peers"
)

// OpenTunnel makes the TUN device to other nodes. Its packets have a struct virtio_net_hdr before them.
func (r Router) OpenTunnel(mtu int) (tun *os.File, err error) {
	err = r.Do(func() error {
		if tun, err = makeTUN(tunnelLink, tunnelIndex, unix.IFF_VNET_HDR); err != nil {
			return err
		}
		var b nlbatch.Batch
		b.SetUp(tunnelIndex, tunnelLink, nlbatch.Attr(unix.IFLA_MTU, nl.Uint32Attr(uint32(mtu))))
		if err := b.Send(); err != nil {
			return errors.Join(err, tun.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the device to other nodes: %w", err)
	}
	return tun, nil
}

// SetPeers routes packets to the networks of other nodes through the tunnel, which must exist. networks are
// the networks of this node: nothing else is reached from the tunnel. While no process has the tunnel open,
// other nodes are unreachable.
func (r Router) SetPeers(networks, peers []netip.Prefix) error {
	err := r.Do(func() error {
		networks, peers := supportedOnly(networks), supportedOnly(peers)
		if err := createPeersTable(networks, peers); err != nil {
			return err
		}
		return routePeers(peers)
	})
	if err != nil {
		return fmt.Errorf("direct packets to other nodes: %w", err)
	}
	return nil
}

// RefusePeers is SetPeers before there is a tunnel: other nodes are unreachable. It does nothing after
// SetPeers.
func (r Router) RefusePeers(networks, peers []netip.Prefix) error {
	err := r.Do(func() error {
		networks, peers := supportedOnly(networks), supportedOnly(peers)
		tables, err := nft.ListTables(nftables.TableFamilyINet, func(name string) bool { return name == peersTable })
		if err != nil || len(tables) > 0 {
			return nil // on a kernel without nf_tables, the routes lead there
		}
		var b nlbatch.Batch
		addUnreachable(&b, peers)
		return errors.Join(b.Send(), createPeersTable(networks, peers))
	})
	if err != nil {
		return fmt.Errorf("refuse packets to other nodes: %w", err)
	}
	return nil
}

// addUnreachable adds the routes to peers that are valid while there is no tunnel.
func addUnreachable(b *nlbatch.Batch, peers []netip.Prefix) {
	for _, p := range peers {
		b.AddRoute(fmt.Sprintf("add route to %s", p), nlbatch.Route{Dst: p, Type: unix.RTN_UNREACHABLE, Priority: nobodyPriority, Protocol: peerProtocol})
	}
}

func supportedOnly(prefixes []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return !supported(p) })
}

// routePeers makes the routes, and removes the routes of former peers.
func routePeers(peers []netip.Prefix) error {
	var b nlbatch.Batch
	for _, p := range peers {
		b.AddRoute(fmt.Sprintf("add route to %s", p), nlbatch.Route{Dst: p, Link: tunnelIndex, Scope: unix.RT_SCOPE_LINK, Protocol: peerProtocol})
	}
	addUnreachable(&b, peers)
	if err := b.Send(); err != nil {
		return err
	}
	return removeRoutes(peers)
}

// removeRoutes removes the routes to other nodes, except those to some networks.
func removeRoutes(keep []netip.Prefix) error {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: peerProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return fmt.Errorf("list the routes to other nodes: %w", err)
	}
	for _, r := range routes {
		if r.Dst != nil && !slices.Contains(keep, toPrefix(r.Dst)) {
			if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("remove route to %s: %w", r.Dst, err)
			}
		}
	}
	return nil
}

func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func toPrefix(n *net.IPNet) netip.Prefix {
	a, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a, bits)
}

// createPeersTable makes the rules that mark packets to peers, and drop packets from the tunnel to others
// than this node's pods.
func createPeersTable(networks, peers []netip.Prefix) error {
	return nft.Transact(func(c *nftables.Conn) error {
		t := nft.Table{Conn: c, Table: c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: peersTable})}
		from := t.AddChain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
		c.FlushChain(from)
		for _, p := range networks {
			t.AddRule(from, nft.MatchInputIndex(tunnelIndex), familyOf(p).MatchDestination(p), nft.Verdict(expr.VerdictAccept))
		}
		t.AddRule(from, nft.MatchInputIndex(tunnelIndex), nft.Verdict(expr.VerdictDrop))
		before := nftables.ChainPriority(int32(*nftables.ChainPriorityMangle) - 1)
		mark := t.AddChain("mark", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, &before)
		c.FlushChain(mark)
		for _, f := range nft.Families {
			set := &nftables.Set{Table: t.Table, Name: fmt.Sprintf("peers%d", f.AddrSize), KeyType: map[uint32]nftables.SetDatatype{4: nftables.TypeIPAddr, 16: nftables.TypeIP6Addr}[f.AddrSize], Interval: true}
			if err := c.AddSet(set, nil); err != nil {
				return err
			}
			c.FlushSet(set)
			if err := c.SetAddElements(set, intervals(f, peers)); err != nil {
				return err
			}
			t.AddRule(mark, f.MatchFamily(), []expr.Any{
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.DestinationOffset(), Len: f.AddrSize},
				&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID},
			}, nft.SetMark(nft.PeerMark))
		}
		return nil
	})
}

func familyOf(p netip.Prefix) nft.Family {
	if p.Addr().Is4() {
		return nft.IPv4
	}
	return nft.IPv6
}

// intervals returns the elements of a set of networks, which do not overlap. Adjacent networks are one
// interval.
func intervals(f nft.Family, networks []netip.Prefix) (elements []nftables.SetElement) {
	networks = slices.DeleteFunc(slices.Clone(networks), func(p netip.Prefix) bool { return familyOf(p).AddrSize != f.AddrSize })
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	for _, p := range networks {
		end := nftables.SetElement{Key: after(p), IntervalEnd: true}
		if last := len(elements) - 1; last >= 0 && slices.Equal(elements[last].Key, p.Addr().AsSlice()) {
			elements[last] = end
			continue
		}
		elements = append(elements, nftables.SetElement{Key: p.Masked().Addr().AsSlice()}, end)
	}
	return elements
}

// after returns the first address after a network.
func after(p netip.Prefix) []byte {
	b := p.Masked().Addr().AsSlice()
	for carry, bit := 1, p.Bits()-1; carry > 0 && bit >= 0; bit-- {
		mask := byte(0x80 >> (bit % 8))
		carry = int(b[bit/8] & mask) // a one becomes a zero and is carried
		b[bit/8] ^= mask
	}
	return b
}

// HasPods reports whether a pod is attached to the router.
func (r Router) HasPods() (is bool, err error) {
	err = r.Do(func() error {
		links, err := net.Interfaces()
		is = slices.ContainsFunc(links, func(i net.Interface) bool {
			slot := i.Index - routerIndexBase
			return slot > 0 && slot <= ipam.MaxSlot && strings.HasPrefix(i.Name, "p")
		})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("list the pods' devices: %w", err)
	}
	return is, nil
}
