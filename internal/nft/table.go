package nft

import (
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Table is a table under construction, in a transaction.
type Table struct {
	*nftables.Conn
	*nftables.Table
}

// AddChain adds a chain with rules, at a hook of the kernel.
func (t Table) AddChain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority, rules ...[]expr.Any) *nftables.Chain {
	c := t.Conn.AddChain(&nftables.Chain{Name: name, Table: t.Table, Type: kind, Hooknum: hook, Priority: priority})
	for _, rule := range rules {
		t.AddRule(c, rule)
	}
	return c
}

// AddRule adds a rule, concatenated from parts.
func (t Table) AddRule(c *nftables.Chain, parts ...[]expr.Any) {
	t.Conn.AddRule(&nftables.Rule{Table: t.Table, Chain: c, Exprs: slices.Concat(parts...)})
}

// ListTables returns the tables of the calling thread's network that which selects by name.
func ListTables(family nftables.TableFamily, which func(name string) bool) ([]*nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("connect to nftables: %w", err)
	}
	tables, err := c.ListTablesOfFamily(family)
	if err != nil {
		return nil, fmt.Errorf("list the tables of nftables: %w", err)
	}
	return slices.DeleteFunc(tables, func(t *nftables.Table) bool { return !which(t.Name) }), nil
}

// DeleteTables removes tables in one transaction.
func DeleteTables(tables []*nftables.Table) error {
	err := Transact(func(c *nftables.Conn) error {
		for _, t := range tables {
			c.DelTable(t)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the tables of nftables: %w", err)
	}
	return nil
}
