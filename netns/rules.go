package netns

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
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

// exit is how what a pod says leaves the router; its text is in the name of the pod's table.
type exit string

const (
	byProcess     exit = ""
	byKernel      exit = "out"
	byPlainKernel exit = "plain" // one without nft_socket
)

// tableName is a pod's table. Its rules follow from its name alone, as long as the router
// lives: the number changes with every change of rules.
func tableName(s Slot, by exit) string { return fmt.Sprintf("pod%d.7%s", s, by) }

// port is where a pod's connections are taken, on the router's loopback.
func port(s Slot) uint16 { return firstPort + uint16(s) }

// addTable makes a pod's table, if it is not there, in place of others of that pod, with the sets of
// who answers by some families. It asks first: to remove a table, and to fail, takes the kernel
// longer than all the rest.
func addTable(s Slot, by exit, answering []ipFamily, rules chain) error {
	there, err := tablesOf(map[Slot]bool{s: true})
	if err != nil {
		return fmt.Errorf("list nftables rules: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName(s, by)}
	if len(there) == 1 && there[0].Name == t.Name {
		return nil
	}
	err = Transact(func(c *nftables.Conn) error {
		for _, old := range there {
			c.DelTable(old)
		}
		c.CreateTable(t)
		chain := c.AddChain(&nftables.Chain{
			Name: "from", Table: t, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle,
		})
		for _, f := range answering {
			if err := c.AddSet(f.answering(t), nil); err != nil {
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

// delTables removes the tables of pods, in one transaction. Where none can be listed, as on
// kernels without nf_tables, there is none.
func delTables(gone map[Slot]bool) error {
	tables, err := tablesOf(gone)
	if err != nil || len(tables) == 0 {
		return nil
	}
	err = Transact(func(c *nftables.Conn) error {
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

// tablesOf lists the tables of pods, of all versions.
func tablesOf(pods map[Slot]bool) ([]*nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool {
		var s Slot
		var version int
		n, _ := fmt.Sscanf(t.Name, "pod%d.%d", &s, &version)
		return n != 2 || !pods[s]
	}), err
}

// chain is a list of rules.
type chain [][]expr.Any

// add adds a rule of parts.
func (c *chain) add(parts ...[]expr.Any) { *c = append(*c, slices.Concat(parts...)) }

// rules are those of a pod's only chain.
func rules(s Slot, pool Pool, own Addresses, by exit) chain {
	var all chain
	add := all.add
	// Of other devices than the pod's two there is nothing to do, as soon as can be: their
	// packets come through here, too.
	add(otherSlot(s), verdict(expr.VerdictAccept))
	for _, f := range families {
		add(iif(firstTUN+int(s)), f.only(), firstPacket(), f.answers())
		add(iif(firstTUN+int(s)), f.only(), firstPacket(), f.take(port(s)))
	}
	add(notIif(firstPod+int(s)), verdict(expr.VerdictAccept))
	for _, f := range families {
		all.ownSource(f, f.of(own))
		add(f.to(f.pool(pool)), f.otherThan(f.of(pool.Gateway())), verdict(expr.VerdictAccept))
		add(f.only(), notFirst(), f.ongoing())
	}
	add(v4.to(beyond), verdict(expr.VerdictDrop))
	for _, f := range families {
		if by != byProcess && f.size == v4.size { // others leave by the kernel, as what they are about does
			if by == byKernel {
				all.answeredErrors(f, own.V4)
			}
			all.ownErrors(f, f.to(host(pool.Gateway().V4)), own.V4)
			continue
		}
		all.ownErrors(f, f.only(), f.of(own))
	}
	add(v6.to(onLink), verdict(expr.VerdictAccept))
	for _, f := range families {
		// The router itself has nothing to offer but names and an echo.
		gateway := f.to(host(f.of(pool.Gateway())))
		add(gateway, destinationPort(domain), f.take(port(s)))
		add(gateway, protocol(unix.IPPROTO_UDP), f.ongoing()) // answers to what came in the router's name
		add(gateway, otherProtocol(f.icmp), verdict(expr.VerdictDrop))
		add(gateway, verdict(expr.VerdictAccept))
	}
	if by != byProcess {
		all = append(all, out()...)
	}
	for _, f := range families {
		add(f.only(), firstPacket(), f.justAnswered(), f.take(port(s)))
	}
	add(firstPacket(), verdict(expr.VerdictAccept))
	// What is neither TCP nor UDP has no sockets, so this does not apply to it.
	for _, f := range families {
		add(f.only(), f.take(port(s)))
	}
	return all
}

// ownSource drops what has not the pod's address, but for what neighbours find each other
// by. The packets are those of its device.
func (c *chain) ownSource(f ipFamily, own netip.Addr) {
	other := append(f.only(), f.from(host(own), expr.CmpOpNeq)...)
	if f.size == v6.size {
		c.add(other, f.address(f.source+f.size, onLink, expr.CmpOpNeq), verdict(expr.VerdictDrop))
		other = slices.Concat(other, f.from(linkLocal, expr.CmpOpNeq), f.from(host(netip.IPv6Unspecified()), expr.CmpOpNeq))
	}
	c.add(other, verdict(expr.VerdictDrop))
}

// ownErrors has errors of ICMP delivered here that quote what has been sent to the pod, and
// drops others: of the packets that match.
func (c *chain) ownErrors(f ipFamily, match []expr.Any, own netip.Addr) {
	for _, these := range f.icmpErrors() {
		c.add(match, these, f.quotesTo(own), deliver())
		c.add(match, these, verdict(expr.VerdictDrop))
	}
}

// answeredErrors has errors of ICMP delivered here that quote what a socket here has sent to the
// pod in the name of others. Those that quote what others have sent go on.
func (c *chain) answeredErrors(f ipFamily, own netip.Addr) {
	for _, these := range f.icmpErrors() {
		c.add(f.only(), these, f.quotesTo(own), quotesOurs(), deliver())
	}
}

// sourceRules are the rules of a pod whose packets come to its process as they are: what it
// says in the name of others is dropped all the same.
func sourceRules(s Slot, pool Pool, own Addresses) chain {
	var all chain
	all.add(otherSlot(s), verdict(expr.VerdictAccept))
	all.add(notIif(firstPod+int(s)), verdict(expr.VerdictAccept))
	for _, f := range families {
		all.ownSource(f, f.of(own))
	}
	// Errors to others are the process's, as all else.
	all.ownErrors(v4, v4.to(host(pool.Gateway().V4)), own.V4)
	all.ownErrors(v6, v6.to(host(pool.Gateway().V6)), own.V6)
	all.ownErrors(v6, v6.to(onLink), own.V6)
	return all
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	onLink    = netip.MustParsePrefix("fe00::/7")    // multicast too: neighbours are found by it
	beyond    = netip.MustParsePrefix("224.0.0.0/3") // multicast, broadcast and what nobody has

	// nowhere is what a pod is not led to, as netns/egress has it, besides beyond.
	nowhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), host(HostLoopback.V4)}
)
