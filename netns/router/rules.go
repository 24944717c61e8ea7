package router

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/netns/ipam"
)

// nftables treats a pod's packets in the router as follows. There is one table per pod, made and
// removed in one transaction, so that no supervisor touches another's table.
//
//   - Packets with a source other than the pod's own address are dropped, in every egress
//     mode.
//   - Packets to a pod or a Service continue, and the kernel routes them; but not those to a Service
//     whose endpoints are other hosts. netns/services has marked these, and those to Services with addresses
//     outside the pods' network. So do packets to pods of other nodes, which SetPeers marks.
//   - The first packet of a TCP connection continues too, to the TUN device: the process
//     there connects first and sends the packet back, which then reaches the listening socket. So
//     a pod sees a refused connection as refused. A first packet to a server that has just accepted
//     another connection reaches the socket at once (answered.go).
//   - All other TCP and UDP packets reach a socket of that process, which has the
//     pod's destination as its address (TPROXY: Documentation/networking/tproxy.rst).
//   - An ICMP error that quotes a packet which a socket of the router has sent to the pod is
//     delivered to the router; one that quotes packets of others is not.
//   - The rest, ICMP, goes to the TUN device.

// egressMode is how a pod's packets leave the router; its text is part of the name of the pod's
// table.
type egressMode string

const (
	viaProcess            egressMode = ""
	viaMasquerade         egressMode = "out"
	viaMasqueradeNoSocket egressMode = "plain" // on a kernel without nft_socket
)

// tableName returns the name of a pod's table. The name determines its rules as long as the router
// exists: the number changes with every change of the rules.
func tableName(s ipam.Slot, by egressMode) string { return fmt.Sprintf("pod%d.10%s", s, by) }

// port returns the port on the router's loopback that accepts a pod's connections.
func port(s ipam.Slot) uint16 { return portBase + uint16(s) }

// createTable makes a pod's table with the sets of answering servers of some families. It replaces
// other tables of that pod and does nothing if the table exists. It queries first: removing a table,
// or a failure, takes the kernel longer than all the rest.
func createTable(s ipam.Slot, by egressMode, answering []nft.Family, rules ruleList) error {
	there, err := listTables(map[ipam.Slot]bool{s: true})
	if err != nil {
		return err
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName(s, by)}
	if len(there) == 1 && there[0].Name == t.Name {
		return nil
	}
	err = nft.Transact(func(c *nftables.Conn) error {
		for _, old := range there {
			c.DelTable(old)
		}
		c.CreateTable(t)
		for _, f := range answering {
			if err := c.AddSet(answeredSet(f, t), nil); err != nil {
				return err
			}
		}
		nft.Table{Conn: c, Table: t}.AddChain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle, rules...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("add nftables rules of the pod: %w", err)
	}
	return nil
}

// deleteTables removes the tables of pods in one transaction. If the list fails, as on kernels
// without nf_tables, there are no tables.
func deleteTables(gone map[ipam.Slot]bool) error {
	tables, err := listTables(gone)
	if err != nil || len(tables) == 0 {
		return nil
	}
	return nft.DeleteTables(tables)
}

// listTables returns the tables of pods, of all versions.
func listTables(pods map[ipam.Slot]bool) ([]*nftables.Table, error) {
	return nft.ListTables(nftables.TableFamilyINet, func(name string) bool {
		var s ipam.Slot
		var version int
		n, _ := fmt.Sscanf(name, "pod%d.%d", &s, &version)
		return n == 2 && pods[s]
	})
}

// ruleList is a list of rules.
type ruleList [][]expr.Any

// add appends a rule, concatenated from parts.
func (c *ruleList) add(parts ...[]expr.Any) { *c = append(*c, slices.Concat(parts...)) }

// podRules returns the rules of a pod's only chain.
func podRules(s ipam.Slot, pool ipam.Pool, addresses ipam.Addresses, by egressMode) ruleList {
	var all ruleList
	add := all.add
	// Packets of devices other than the pod's two pass this chain too. They leave it as early as
	// possible.
	add(matchOtherSlot(s), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		add(nft.MatchInputIndex(tunIndexBase+int(s)), f.MatchFamily(), nft.MatchSYN(), markAnswered(f))
		add(nft.MatchInputIndex(tunIndexBase+int(s)), f.MatchFamily(), nft.MatchSYN(), toListener(f, port(s)))
	}
	add(nft.MatchOtherInputIndex(routerIndexBase+int(s)), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		all.addSourceCheck(f, addrOf(f, addresses))
		for _, p := range prefixesOf(f, pool) {
			add(f.MatchDestination(p), f.MatchOtherDestination(addrOf(f, pool.Gateway())), nft.MatchOtherMark(nft.ProxyMark), nft.Verdict(expr.VerdictAccept))
		}
		add(f.MatchFamily(), nft.MatchNotSYN(), toOwnSocket(f))
		if pool.HasNode() { // a client of a host port may be on a node, or one of its pods
			add(f.MatchFamily(), nft.MatchMark(nft.PeerMark), nft.MatchProtocol(unix.IPPROTO_UDP), toOwnSocket(f))
			add(f.MatchFamily(), nft.MatchMark(nft.PeerMark), nft.Verdict(expr.VerdictAccept))
		}
	}
	add(nft.MatchMark(nft.ServiceMark), nft.Verdict(expr.VerdictAccept))
	add(nft.IPv4.MatchDestination(reserved), nft.Verdict(expr.VerdictDrop))
	for _, f := range nft.Families {
		if by != viaProcess && f.AddrSize == nft.IPv4.AddrSize { // ICMP errors leave through the kernel, as their connections do
			if by == viaMasquerade {
				all.addTransparentErrors(f, addresses.V4)
			}
			all.addOwnErrors(f, f.MatchDestination(nft.HostPrefix(pool.Gateway().V4)), addresses.V4)
			continue
		}
		all.addOwnErrors(f, f.MatchFamily(), addrOf(f, addresses))
	}
	add(nft.IPv6.MatchDestination(linkScope), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		// The router itself offers only DNS and echo.
		gateway := f.MatchDestination(nft.HostPrefix(addrOf(f, pool.Gateway())))
		add(gateway, nft.MatchDestinationPort(dnsPort), toListener(f, port(s)))
		add(gateway, nft.MatchProtocol(unix.IPPROTO_UDP), toOwnSocket(f)) // answers to what was sent with the router's address
		add(gateway, nft.MatchOtherProtocol(f.ICMPProto), nft.Verdict(expr.VerdictDrop))
		add(gateway, nft.Verdict(expr.VerdictAccept))
	}
	if by != viaProcess {
		all = append(all, masqueradeRules()...)
	}
	for _, f := range nft.Families {
		add(f.MatchFamily(), nft.MatchSYN(), matchAnswered(f), toListener(f, port(s)))
	}
	add(nft.MatchSYN(), nft.Verdict(expr.VerdictAccept))
	// Packets other than TCP and UDP have no sockets, so this does not apply to them.
	for _, f := range nft.Families {
		add(f.MatchFamily(), toListener(f, port(s)))
	}
	return all
}

// addSourceCheck drops packets without the pod's address, except neighbour discovery. It
// sees the packets of the pod's device only.
func (c *ruleList) addSourceCheck(f nft.Family, address netip.Addr) {
	other := append(f.MatchFamily(), f.MatchSource(nft.HostPrefix(address), expr.CmpOpNeq)...)
	if f.AddrSize == nft.IPv6.AddrSize {
		c.add(other, f.MatchAddress(f.DestinationOffset(), linkScope, expr.CmpOpNeq), nft.Verdict(expr.VerdictDrop))
		other = slices.Concat(other, f.MatchSource(linkLocal, expr.CmpOpNeq), f.MatchSource(nft.HostPrefix(netip.IPv6Unspecified()), expr.CmpOpNeq))
	}
	c.add(other, nft.Verdict(expr.VerdictDrop))
}

// addOwnErrors delivers, of the matching packets, ICMP errors that quote packets to the pod, and
// drops other ICMP errors.
func (c *ruleList) addOwnErrors(f nft.Family, match []expr.Any, address netip.Addr) {
	for _, these := range f.MatchICMPErrors() {
		c.add(match, these, f.MatchQuotedDestination(address), deliverLocally())
		c.add(match, these, nft.Verdict(expr.VerdictDrop))
	}
}

// addTransparentErrors delivers ICMP errors that quote a packet from a transparent socket of the router
// to the pod. Other errors continue.
func (c *ruleList) addTransparentErrors(f nft.Family, address netip.Addr) {
	for _, these := range f.MatchICMPErrors() {
		c.add(f.MatchFamily(), these, f.MatchQuotedDestination(address), nft.MatchQuotedTransparent(), deliverLocally())
	}
}

// packetModeRules returns the rules of a pod in packet mode. Packets with foreign source addresses
// are dropped there too.
func packetModeRules(s ipam.Slot, pool ipam.Pool, addresses ipam.Addresses) ruleList {
	var all ruleList
	all.add(matchOtherSlot(s), nft.Verdict(expr.VerdictAccept))
	all.add(nft.MatchOtherInputIndex(routerIndexBase+int(s)), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		all.addSourceCheck(f, addrOf(f, addresses))
	}
	// The process handles errors to others, like all other packets.
	all.addOwnErrors(nft.IPv4, nft.IPv4.MatchDestination(nft.HostPrefix(pool.Gateway().V4)), addresses.V4)
	all.addOwnErrors(nft.IPv6, nft.IPv6.MatchDestination(nft.HostPrefix(pool.Gateway().V6)), addresses.V6)
	all.addOwnErrors(nft.IPv6, nft.IPv6.MatchDestination(linkScope), addresses.V6)
	return all
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	linkScope = netip.MustParsePrefix("fe00::/7")    // includes multicast, which neighbour discovery uses
	reserved  = netip.MustParsePrefix("224.0.0.0/3") // multicast, broadcast and unassigned addresses

	// unreachable lists the destinations that pods may not reach, as in netns/egress, besides
	// reserved.
	unreachable = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), nft.HostPrefix(ipam.HostLoopback.V4)}
)

func addrOf(f nft.Family, a ipam.Addresses) netip.Addr {
	if f.AddrSize == 4 {
		return a.V4
	}
	return a.V6
}

// prefixesOf returns the networks of pods and Services of one family.
func prefixesOf(f nft.Family, p ipam.Pool) []netip.Prefix {
	return slices.DeleteFunc(p.Prefixes(), func(n netip.Prefix) bool { return n.Addr().BitLen() != int(f.AddrSize)*8 })
}

// toOwnSocket delivers a packet to the socket with its own addresses, if there is one. The kernel
// looks the socket up once, here; after a match by nft_socket it would look it up again. nft_socket
// also inspects the packets that ICMP errors quote; this does not: addOwnErrors handles those.
func toOwnSocket(f nft.Family) []expr.Any { return toListener(f, unusedPort) }

// toListener delivers a packet to the socket that listens on the port on the router's loopback.
func toListener(f nft.Family, port uint16) []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Immediate{Register: 2, Data: f.Loopback.AsSlice()},
		&expr.TProxy{Family: f.Proto, TableFamily: unix.NFPROTO_INET, RegPort: 1, RegAddr: 2},
	}, deliverLocally()...)
}

// unusedPort is a port without a listener in the router.
const unusedPort = 1

// deliverLocally delivers a packet to the router, whatever its destination.
func deliverLocally() []expr.Any {
	return append(nft.SetMark(nft.LocalMark), nft.Verdict(expr.VerdictAccept)...)
}

// dnsPort is the port of the pods' resolver, at the gateway (RFC 1035).
const dnsPort = 53

// matchOtherSlot matches packets of devices whose numbers do not belong to a slot.
func matchOtherSlot(s ipam.Slot) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIF, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(routerIndexBase - 1), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(uint32(s))},
	}
}
