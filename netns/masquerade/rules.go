package masquerade

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
)

// tableName returns the name of the table with a masquerade device's rules in the host's network. The name
// determines the rules: the number changes with every change of the rules.
func tableName(n int) string { return hostDevice(n) + ".1" }

// isOwnTable reports whether a table belongs to a masquerade device.
func isOwnTable(table string) bool { _, ok := parseTableName(table); return ok }

// parseTableName returns the number of the masquerade device that a table belongs to.
func parseTableName(table string) (n int, ok bool) {
	var version int
	parts, _ := fmt.Sscanf(table, "podrun%d.%d", &n, &version)
	return n, parts == 2
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// createTable makes a table in the calling thread's network if it does not exist. It queries first,
// because a failed attempt takes the kernel longer.
func createTable(name string, fill func(t nft.Table)) error {
	there, err := nft.ListTables(nftables.TableFamilyIPv4, func(other string) bool { return other == name })
	if err != nil || len(there) > 0 {
		return err
	}
	err = nft.Transact(func(c *nftables.Conn) error {
		t := nft.Table{Conn: c, Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}}
		c.CreateTable(t.Table)
		fill(t)
		return nil
	})
	if err != nil && !errors.Is(err, unix.EEXIST) { // another process has made it
		return fmt.Errorf("add nftables rules of the table %s: %w", name, err)
	}
	return nil
}

// hostRules fills the host's table. From the masquerade device it accepts only packets of the router, of
// tracked connections, and not to a loopback address; they leave with the host's address. To the
// masquerade device it accepts only answers, whatever else the host forwards.
func hostRules(n int, router netip.Addr) error {
	if err := removeStaleTables(); err != nil {
		return err
	}
	device := hostDevice(n)
	return createTable(tableName(n), func(t nft.Table) {
		t.AddChain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle,
			slices.Concat(nft.MatchInputDevice(device), nft.IPv4.MatchSource(nft.HostPrefix(router), expr.CmpOpNeq), nft.Verdict(expr.VerdictDrop)),
			slices.Concat(nft.MatchInputDevice(device), nft.IPv4.MatchAddress(nft.IPv4.DestinationOffset(), loopback, expr.CmpOpEq), nft.Verdict(expr.VerdictDrop)),
			slices.Concat(nft.MatchInputDevice(device), nft.MatchNoState(expr.CtStateBitNEW|expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), nft.Verdict(expr.VerdictDrop)))
		t.AddChain("to", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter,
			slices.Concat(nft.MatchOutputDevice(device, expr.CmpOpEq), nft.MatchNoState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), nft.Verdict(expr.VerdictDrop)))
		t.AddChain("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
			slices.Concat(nft.IPv4.MatchSource(nft.HostPrefix(router), expr.CmpOpEq), nft.MatchOutputDevice(device, expr.CmpOpNeq), []expr.Any{&expr.Masq{}}))
	})
}

// routerRules fills the router's table. Outgoing packets get the router's address at the masquerade device or
// are dropped; only answers come in.
func routerRules(n int, router netip.Addr) error {
	device := routerDevice(n)
	last := nftables.ChainPriority(int32(*nftables.ChainPriorityNATSource) + 50)
	return createTable(device+".1", func(t nft.Table) {
		t.AddChain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle,
			slices.Concat(nft.MatchInputDevice(device), nft.MatchNoState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), nft.Verdict(expr.VerdictDrop)))
		t.AddChain("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
			slices.Concat(nft.MatchOutputDevice(device, expr.CmpOpEq), nft.SourceNAT(router)))
		t.AddChain("left", nftables.ChainTypeFilter, nftables.ChainHookPostrouting, &last,
			slices.Concat(nft.MatchOutputDevice(device, expr.CmpOpEq), nft.IPv4.MatchSource(nft.HostPrefix(router), expr.CmpOpNeq), nft.Verdict(expr.VerdictDrop)))
	})
}

// removeStaleTables removes the rules of masquerade devices that no longer exist and of older versions.
func removeStaleTables() error {
	tables, err := nft.ListTables(nftables.TableFamilyIPv4, isOwnTable)
	if err != nil {
		return err
	}
	var stale []*nftables.Table
	for _, t := range tables {
		n, _ := parseTableName(t.Name)
		there, err := exists(hostDevice(n))
		if err != nil {
			return err
		}
		if !there || t.Name != tableName(n) {
			stale = append(stale, t)
		}
	}
	if err := nft.DeleteTables(stale); err != nil && !errors.Is(err, unix.ENOENT) { // the end of another router's last pod has removed them
		return err
	}
	return nil
}
