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

// What nftables does with a pod's packets in the router: one table per pod, made and
// removed in one transaction each, so that no supervisor touches another's.
//
//   - What does not have the pod's own address as its source is dropped, whatever carries
//     the pod's traffic.
//   - What is for a pod or a Service goes on, to be routed by the kernel.
//   - The first packet of a TCP connection goes on too, to the TUN device: the process
//     there connects first and sends it back, and then it comes to the listening socket. So
//     a pod sees a refused connection as refused. One for who has just answered another comes
//     there at once (answering.go).
//   - Every other one of TCP and UDP comes to a socket of that process, which has the
//     address that the pod speaks to (TPROXY: Documentation/networking/tproxy.rst).
//   - An error of ICMP that quotes what the pod has been sent comes to the router's sockets,
//     one of which has sent it; one that quotes what others have been sent does not.
//   - The rest, ICMP, goes to the TUN device.

// egressMode is how what a pod says leaves the router; its text is in the name of the pod's table.
type egressMode string

const (
	viaProcess            egressMode = ""
	viaMasquerade         egressMode = "out"
	viaMasqueradeNoSocket egressMode = "plain" // one without nft_socket
)

// tableName is a pod's table. Its rules follow from its name alone, as long as the router
// lives: the number changes with every change of rules.
func tableName(s ipam.Slot, by egressMode) string { return fmt.Sprintf("pod%d.7%s", s, by) }

// port is where a pod's connections are taken, on the router's loopback.
func port(s ipam.Slot) uint16 { return portBase + uint16(s) }

// createTable makes a pod's table, if it is not there, in place of others of that pod, with the sets of
// who answers by some families. It asks first: to remove a table, and to fail, takes the kernel
// longer than all the rest.
func createTable(s ipam.Slot, by egressMode, answering []nft.Family, rules ruleList) error {
	there, err := listTables(map[ipam.Slot]bool{s: true})
	if err != nil {
		return fmt.Errorf("list nftables rules: %w", err)
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
		chain := c.AddChain(&nftables.Chain{
			Name: "from", Table: t, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle,
		})
		for _, f := range answering {
			if err := c.AddSet(answeredSet(f, t), nil); err != nil {
				return err
			}
		}
		for _, r := range rules {
			c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: r})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add nftables rules of the pod: %w", err)
	}
	return nil
}

// deleteTables removes the tables of pods, in one transaction. Where none can be listed, as on
// kernels without nf_tables, there is none.
func deleteTables(gone map[ipam.Slot]bool) error {
	tables, err := listTables(gone)
	if err != nil || len(tables) == 0 {
		return nil
	}
	err = nft.Transact(func(c *nftables.Conn) error {
		for _, t := range tables {
			c.DelTable(t)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove nftables rules: %w", err)
	}
	return nil
}

// listTables lists the tables of pods, of all versions.
func listTables(pods map[ipam.Slot]bool) ([]*nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool {
		var s ipam.Slot
		var version int
		n, _ := fmt.Sscanf(t.Name, "pod%d.%d", &s, &version)
		return n != 2 || !pods[s]
	}), err
}

// ruleList is a list of rules.
type ruleList [][]expr.Any

// add adds a rule of parts.
func (c *ruleList) add(parts ...[]expr.Any) { *c = append(*c, slices.Concat(parts...)) }

// podRules are those of a pod's only chain.
func podRules(s ipam.Slot, pool ipam.Pool, own ipam.Addresses, by egressMode) ruleList {
	var all ruleList
	add := all.add
	// Of other devices than the pod's two there is nothing to do, as soon as can be: their
	// packets come through here, too.
	add(matchOtherSlot(s), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		add(nft.MatchInputIndex(tunIndexBase+int(s)), f.MatchFamily(), nft.MatchSYN(), markAnswered(f))
		add(nft.MatchInputIndex(tunIndexBase+int(s)), f.MatchFamily(), nft.MatchSYN(), toListener(f, port(s)))
	}
	add(nft.MatchOtherInputIndex(routerIndexBase+int(s)), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		all.addSourceCheck(f, addrOf(f, own))
		add(f.MatchDestination(prefixOf(f, pool)), f.MatchOtherDestination(addrOf(f, pool.Gateway())), nft.Verdict(expr.VerdictAccept))
		add(f.MatchFamily(), nft.MatchNotSYN(), toOwnSocket(f))
	}
	add(nft.IPv4.MatchDestination(reserved), nft.Verdict(expr.VerdictDrop))
	for _, f := range nft.Families {
		if by != viaProcess && f.AddrSize == nft.IPv4.AddrSize { // others leave by the kernel, as what they are about does
			if by == viaMasquerade {
				all.addTransparentErrors(f, own.V4)
			}
			all.addOwnErrors(f, f.MatchDestination(nft.HostPrefix(pool.Gateway().V4)), own.V4)
			continue
		}
		all.addOwnErrors(f, f.MatchFamily(), addrOf(f, own))
	}
	add(nft.IPv6.MatchDestination(linkScope), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		// The router itself has nothing to offer but names and an echo.
		gateway := f.MatchDestination(nft.HostPrefix(addrOf(f, pool.Gateway())))
		add(gateway, nft.MatchDestinationPort(dnsPort), toListener(f, port(s)))
		add(gateway, nft.MatchProtocol(unix.IPPROTO_UDP), toOwnSocket(f)) // answers to what came in the router's name
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
	// What is neither TCP nor UDP has no sockets, so this does not apply to it.
	for _, f := range nft.Families {
		add(f.MatchFamily(), toListener(f, port(s)))
	}
	return all
}

// addSourceCheck drops what has not the pod's address, but for what neighbours find each other
// by. The packets are those of its device.
func (c *ruleList) addSourceCheck(f nft.Family, own netip.Addr) {
	other := append(f.MatchFamily(), f.MatchSource(nft.HostPrefix(own), expr.CmpOpNeq)...)
	if f.AddrSize == nft.IPv6.AddrSize {
		c.add(other, f.MatchAddress(f.SourceOffset+f.AddrSize, linkScope, expr.CmpOpNeq), nft.Verdict(expr.VerdictDrop))
		other = slices.Concat(other, f.MatchSource(linkLocal, expr.CmpOpNeq), f.MatchSource(nft.HostPrefix(netip.IPv6Unspecified()), expr.CmpOpNeq))
	}
	c.add(other, nft.Verdict(expr.VerdictDrop))
}

// addOwnErrors has errors of ICMP delivered here that quote what has been sent to the pod, and
// drops others: of the packets that match.
func (c *ruleList) addOwnErrors(f nft.Family, match []expr.Any, own netip.Addr) {
	for _, these := range f.MatchICMPErrors() {
		c.add(match, these, f.MatchQuotedDestination(own), deliverLocally())
		c.add(match, these, nft.Verdict(expr.VerdictDrop))
	}
}

// addTransparentErrors has errors of ICMP delivered here that quote what a socket here has sent to the
// pod in the name of others. Those that quote what others have sent go on.
func (c *ruleList) addTransparentErrors(f nft.Family, own netip.Addr) {
	for _, these := range f.MatchICMPErrors() {
		c.add(f.MatchFamily(), these, f.MatchQuotedDestination(own), nft.MatchQuotedTransparent(), deliverLocally())
	}
}

// packetModeRules are the rules of a pod whose packets come to its process as they are: what it
// says in the name of others is dropped all the same.
func packetModeRules(s ipam.Slot, pool ipam.Pool, own ipam.Addresses) ruleList {
	var all ruleList
	all.add(matchOtherSlot(s), nft.Verdict(expr.VerdictAccept))
	all.add(nft.MatchOtherInputIndex(routerIndexBase+int(s)), nft.Verdict(expr.VerdictAccept))
	for _, f := range nft.Families {
		all.addSourceCheck(f, addrOf(f, own))
	}
	// Errors to others are the process's, as all else.
	all.addOwnErrors(nft.IPv4, nft.IPv4.MatchDestination(nft.HostPrefix(pool.Gateway().V4)), own.V4)
	all.addOwnErrors(nft.IPv6, nft.IPv6.MatchDestination(nft.HostPrefix(pool.Gateway().V6)), own.V6)
	all.addOwnErrors(nft.IPv6, nft.IPv6.MatchDestination(linkScope), own.V6)
	return all
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	linkScope = netip.MustParsePrefix("fe00::/7")    // multicast too: neighbours are found by it
	reserved  = netip.MustParsePrefix("224.0.0.0/3") // multicast, broadcast and what nobody has

	// unreachable is what a pod is not led to, as netns/egress has it, besides beyond.
	unreachable = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), nft.HostPrefix(ipam.HostLoopback.V4)}
)

func addrOf(f nft.Family, a ipam.Addresses) netip.Addr {
	if f.AddrSize == 4 {
		return a.V4
	}
	return a.V6
}

func prefixOf(f nft.Family, p ipam.Pool) netip.Prefix {
	if f.AddrSize == 4 {
		return p.V4
	}
	return p.V6
}

// toOwnSocket gives a packet to the socket with its own addresses, if there is one. The kernel
// looks for it once, here, where to match it first (nft_socket) it looks again after that.
// nft_socket looks into errors of ICMP, too, for whose packet they quote; this does not:
// there is addOwnErrors for it.
func toOwnSocket(f nft.Family) []expr.Any { return toListener(f, unusedPort) }

// toListener gives a packet to the socket that listens to the port on the router's loopback.
func toListener(f nft.Family, port uint16) []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Immediate{Register: 2, Data: f.Loopback.AsSlice()},
		&expr.TProxy{Family: f.Proto, TableFamily: unix.NFPROTO_INET, RegPort: 1, RegAddr: 2},
	}, deliverLocally()...)
}

// unusedPort is a port to which nobody in the router listens.
const unusedPort = 1

// deliverLocally has a packet delivered here, whatever its destination.
func deliverLocally() []expr.Any {
	return append([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(localMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}, nft.Verdict(expr.VerdictAccept)...)
}

// dnsPort is the port of the pods' resolver, at the gateway (RFC 1035).
const dnsPort = 53

// matchOtherSlot matches what comes by devices whose numbers do not end as those of a slot.
func matchOtherSlot(s ipam.Slot) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIF, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(routerIndexBase - 1), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(uint32(s))},
	}
}
