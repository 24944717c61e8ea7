package nft

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// A transaction is applied completely or not at all, and its error is the kernel's.
func TestTransactIsAtomic(t *testing.T) {
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: "one"}
	count := func() int {
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
		if err != nil {
			t.Fatal(err)
		}
		return len(tables)
	}
	err := nsthread.Do(func() error {
		err := Transact(func(c *nftables.Conn) error {
			c.CreateTable(table)
			c.AddRule(&nftables.Rule{Table: table, Chain: &nftables.Chain{Name: "none", Table: table}, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
			return nil
		})
		if !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "change 2 of 2") || count() != 0 {
			t.Errorf("error %v, %d tables, want the rule's and none", err, count())
		}
		for _, want := range []error{nil, unix.EEXIST} {
			err := Transact(func(c *nftables.Conn) error {
				c.CreateTable(table)
				c.AddChain(&nftables.Chain{Name: "some", Table: table})
				return nil
			})
			if !errors.Is(err, want) || count() != 1 {
				t.Errorf("error %v, %d tables, want %v and 1", err, count(), want)
			}
		}
		if err := Transact(func(*nftables.Conn) error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("error %v, want the caller's", err)
		}
		return nil
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}
