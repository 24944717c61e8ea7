package masquerade

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
)

// tableName returns the name of the table with an uplink's rules in the host's network. The name
// determines the rules: the number changes with every change of the rules.
func tableName(n int) string { return hostDevice(n) + ".1" }

// isOwnTable reports whether a table belongs to an uplink.
func isOwnTable(table string) bool { _, ok := parseTableName(table); return ok }

// parseTableName returns the number of the uplink that a table belongs to.
func parseTableName(table string) (n int, ok bool) {
	var version int
	parts, _ := fmt.Sscanf(table, "podrun%d.%d", &n, &version)
	return n, parts == 2
}

// table is a table under construction.
type table struct {
	*nftables.Conn
	*nftables.Table
}

func (t table) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority, rules ...[]expr.Any) {
	c := t.AddChain(&nftables.Chain{Name: name, Table: t.Table, Type: kind, Hooknum: hook, Priority: priority})
	for _, rule := range rules {
		t.AddRule(&nftables.Rule{Table: t.Table, Chain: c, Exprs: rule})
	}
}

// createTable makes a table in the calling thread's network if it does not exist. It asks first,
// because a failed attempt takes the kernel longer.
func createTable(name string, fill func(t table)) error {
	_, there, err := listTables()
	if err != nil || slices.ContainsFunc(there, func(t *nftables.Table) bool { return t.Name == name }) {
		return err
	}
	err = nft.Transact(func(c *nftables.Conn) error {
		t := table{c, &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}}
		c.CreateTable(t.Table)
		fill(t)
		return nil
	})
	if err != nil && !errors.Is(err, unix.EEXIST) { // another process has made it
		return fmt.Errorf("add nftables rules of the table %s: %w", name, err)
	}
	return nil
}

// hostRules fills the host's table. From the uplink it accepts only packets of the router, of
// tracked connections, and not to a loopback address; they leave with the host's address. To the
// uplink it accepts only answers, whatever else the host forwards.
func hostRules(n int, router netip.Addr) error {
	if err := removeStaleTables(); err != nil {
		return err
	}
	device := hostDevice(n)
	return createTable(tableName(n), func(t table) {
		t.chain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle,
			concat(iif(device), matchSource(router, expr.CmpOpNeq), drop()),
			concat(iif(device), matchLoopbackDestination(), drop()),
			concat(iif(device), matchNoState(expr.CtStateBitNEW|expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), drop()))
		t.chain("to", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter,
			concat(oif(device, expr.CmpOpEq), matchNoState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), drop()))
		t.chain("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
			concat(matchSource(router, expr.CmpOpEq), oif(device, expr.CmpOpNeq), []expr.Any{&expr.Masq{}}))
	})
}

// routerRules fills the router's table. Outgoing packets get the router's address at the uplink or
// are dropped; only answers come in.
func routerRules(n int, router netip.Addr) error {
	device := routerDevice(n)
	last := nftables.ChainPriority(int32(*nftables.ChainPriorityNATSource) + 50)
	return createTable(device+".1", func(t table) {
		t.chain("from", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle,
			concat(iif(device), matchNoState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), drop()))
		t.chain("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
			concat(oif(device, expr.CmpOpEq), []expr.Any{
				&expr.Immediate{Register: 1, Data: router.AsSlice()},
				&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
			}))
		t.chain("left", nftables.ChainTypeFilter, nftables.ChainHookPostrouting, &last,
			concat(oif(device, expr.CmpOpEq), matchSource(router, expr.CmpOpNeq), drop()))
	})
}

// listTables returns the tables of the calling thread's network and the connection to change them.
func listTables() (*nftables.Conn, []*nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nil, fmt.Errorf("speak to nftables: %w", err)
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, nil, fmt.Errorf("list the rules of nftables: %w", err)
	}
	return c, tables, nil
}

// removeStaleTables removes the rules of uplinks that no longer exist and those of older versions.
func removeStaleTables() error {
	c, tables, err := listTables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		n, ok := parseTableName(t.Name)
		if !ok {
			continue
		}
		there, err := exists(hostDevice(n))
		if err != nil {
			return err
		}
		if !there || t.Name != tableName(n) {
			c.DelTable(t)
		}
	}
	if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) { // the end of another router's last pod has removed them
		return fmt.Errorf("remove nftables rules: %w", err)
	}
	return nil
}

func concat(parts ...[]expr.Any) (rule []expr.Any) {
	for _, p := range parts {
		rule = append(rule, p...)
	}
	return rule
}

func drop() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }

func iif(device string) []expr.Any { return matchDevice(expr.MetaKeyIIFNAME, device, expr.CmpOpEq) }

func oif(device string, op expr.CmpOp) []expr.Any {
	return matchDevice(expr.MetaKeyOIFNAME, device, op)
}

func matchDevice(key expr.MetaKey, device string, op expr.CmpOp) []expr.Any {
	name := device + strings.Repeat("\x00", unix.IFNAMSIZ-len(device))
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: []byte(name)}}
}

// Offsets of addresses in a packet (RFC 791).
const sourceAt, destinationAt = 12, 16

func matchSource(a netip.Addr, op expr.CmpOp) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceAt, Len: 4},
		&expr.Cmp{Op: op, Register: 1, Data: a.AsSlice()},
	}
}

func matchLoopbackDestination() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: destinationAt, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{127}},
	}
}

// matchNoState matches packets whose connection is in none of these states.
func matchNoState(states uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(states), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
	}
}
