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
//   - What does not have the pod's own address as its source is dropped.
//   - What is for a pod or a Service goes on, to be routed by the kernel.
//   - The first packet of a TCP connection goes on too, to the TUN device: the process
//     there connects first and sends it back, and then it comes to the listening socket. So
//     a pod sees a refused connection as refused.
//   - Every other one of TCP and UDP comes to a socket of that process, which has the
//     address that the pod speaks to (TPROXY: Documentation/networking/tproxy.rst).
//   - The rest, ICMP, goes to the TUN device.

// tableName is a pod's table. Its rules follow from its name alone, as long as the router
// lives: the number changes with every change of rules.
func tableName(s Slot, leaves bool) string {
	if leaves {
		return fmt.Sprintf("pod%d.4%s", s, outSuffix)
	}
	return fmt.Sprintf("pod%d.4", s)
}

// port is where a pod's connections are taken, on the router's loopback.
func port(s Slot) uint16 { return firstPort + uint16(s) }

// addTable makes a pod's table, if it is not there, in place of others of that pod. It asks
// first: to remove a table, and to fail, takes the kernel longer than all the rest.
func addTable(s Slot, pool Pool, own Addresses, leaves bool) error {
	there, err := tablesOf(map[Slot]bool{s: true})
	if err != nil {
		return fmt.Errorf("list nftables rules: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName(s, leaves)}
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
		for _, r := range rules(s, pool, own, leaves) {
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

// rules are those of a pod's only chain.
func rules(s Slot, pool Pool, own Addresses, leaves bool) [][]expr.Any {
	var all [][]expr.Any
	add := func(parts ...[]expr.Any) {
		var rule []expr.Any
		for _, p := range parts {
			rule = append(rule, p...)
		}
		all = append(all, rule)
	}
	// Of other devices than the pod's two there is nothing to do, as soon as can be: their
	// packets come through here, too.
	add(otherSlot(s), verdict(expr.VerdictAccept))
	for _, f := range families {
		add(iif(firstTUN+int(s)), f.only(), firstPacket(), f.take(port(s)))
	}
	add(notIif(firstPod+int(s)), verdict(expr.VerdictAccept))
	for _, f := range families {
		// Its own addresses, and those by which neighbours find each other.
		add(f.only(), f.from(host(f.of(own)), expr.CmpOpNeq), f.fromLink(), verdict(expr.VerdictDrop))
		add(f.to(f.pool(pool)), f.otherThan(f.of(pool.Gateway())), verdict(expr.VerdictAccept))
		add(f.only(), notFirst(), f.ongoing())
	}
	add(v4.to(beyond), verdict(expr.VerdictDrop))
	add(v6.to(onLink), verdict(expr.VerdictAccept))
	for _, f := range families {
		// The router itself has nothing to offer but names and an echo.
		gateway := f.to(host(f.of(pool.Gateway())))
		add(gateway, destinationPort(domain), f.take(port(s)))
		add(gateway, protocol(unix.IPPROTO_UDP), f.ongoing()) // answers to what came in the router's name
		add(gateway, otherProtocol(f.icmp), verdict(expr.VerdictDrop))
		add(gateway, verdict(expr.VerdictAccept))
	}
	if leaves {
		all = append(all, out()...)
	}
	add(firstPacket(), verdict(expr.VerdictAccept))
	// What is neither TCP nor UDP has no sockets, so this does not apply to it.
	for _, f := range families {
		add(f.only(), f.take(port(s)))
	}
	return all
}

var (
	linkLocal = netip.MustParsePrefix("fe80::/10")
	onLink    = netip.MustParsePrefix("fe00::/7")    // multicast too: neighbours are found by it
	beyond    = netip.MustParsePrefix("224.0.0.0/3") // multicast, broadcast and what nobody has

	// nowhere is what a pod is not led to, as netns/egress has it, besides beyond.
	nowhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), host(HostLoopback.V4)}
)
