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

// tableName is that of an uplink's rules in the host's network. They follow from it: the
// number changes with every change of rules.
func tableName(n int) string { return hostDevice(n) + ".1" }

// isOwnTable says whether a table is of an uplink's.
func isOwnTable(table string) bool { _, ok := parseTableName(table); return ok }

// parseTableName is whose table it is.
func parseTableName(table string) (n int, ok bool) {
	var version int
	parts, _ := fmt.Sscanf(table, "podrun%d.%d", &n, &version)
	return n, parts == 2
}

// table is one that is being made.
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

// createTable makes a table of the calling thread's network, if it is not there. It asks first:
// to fail takes the kernel longer.
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
	if err != nil && !errors.Is(err, unix.EEXIST) { // somebody has been quicker
		return fmt.Errorf("add nftables rules of the table %s: %w", name, err)
	}
	return nil
}

// hostRules are those of the host: what comes from the uplink is the router's, of a
// connection that the kernel follows, and for nobody's loopback; it leaves with the host's
// address; and nothing goes there but answers, whoever the host passes packets on for.
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

// routerRules are those of the router: what leaves has its address at the uplink, or does
// not leave; and nothing comes but answers.
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

// listTables gives the tables of the calling thread's network, and by what they can be changed.
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

// removeStaleTables removes the rules of uplinks that are not there, and those of older versions.
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
	if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) { // another router's last pod has been quicker
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
