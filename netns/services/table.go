package services

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
)

// tableName is the table's in the router's namespace.
const tableName = "services"

// Apply makes the router lead connections as a directory says, in one step: no packet
// meets anything in between. ranges are all addresses that Services may have: what goes
// to one of them and is not led anywhere is refused; the first address of each is nobody's.
// Where it is so already, nothing is
// done, and changed is false.
func Apply(router string, ranges []netip.Prefix, d Directory) (changed bool, err error) {
	err = nsthread.Do(func() error {
		routes := d.routes()
		mark := digest(ranges, routes)
		old, never, err := currentDigest()
		if err != nil || bytes.Equal(mark, old) {
			return err
		}
		changed = true
		return nft.Transact(func(c *nftables.Conn) error {
			t := &table{Conn: c, digest: mark, empty: len(routes) == 0 && never}
			return t.build(ranges, routes)
		})
	}, router)
	if err != nil {
		return false, fmt.Errorf("lead connections to Services: %w", err)
	}
	return changed, nil
}

// digest tells whether two tables are the same.
func digest(ranges []netip.Prefix, routes []route) []byte {
	h := sha256.New()
	fmt.Fprintln(h, ranges, routes)
	return h.Sum(nil)
}

// currentDigest is that of the table there is; nil if it cannot be told. never says that there is
// no table: then the kernel lists nothing, and has no error.
func currentDigest() (mark []byte, never bool, err error) {
	c, err := nftables.New()
	if err != nil {
		return nil, false, err
	}
	t := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	rules, err := c.GetRules(t, &nftables.Chain{Name: "stamp", Table: t})
	if err != nil || len(rules) != 1 {
		return nil, err == nil && len(rules) == 0, nil // else all of it is made anew
	}
	return rules[0].UserData, false, nil
}

// table is one that is being made.
type table struct {
	*nftables.Conn
	*nftables.Table
	digest []byte
	empty  bool // it leads nothing, and never has
	errs   []error
}

// build replaces what each chain holds. The table and the chains stay, which spares
// waiting for the kernel to be done with them.
func (t *table) build(ranges []netip.Prefix, routes []route) error {
	t.Table = t.AddTable(&nftables.Table{Name: tableName, Family: nftables.TableFamilyINet})
	after := nftables.ChainPriority(int32(*nftables.ChainPriorityNATDest) + 1)
	none := t.chain("refuse", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, &after)
	out := t.chain("keep", nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityFilter)
	for _, rule := range dropRedirects() {
		t.rule(out, rule)
	}
	for _, p := range ranges {
		for _, rule := range reject(familyOf(p.Addr()).toPrefix(p)) {
			t.rule(none, rule)
		}
	}
	if !t.empty {
		t.addNAT(ranges, routes)
	}
	stamp := t.AddChain(&nftables.Chain{Name: "stamp", Table: t.Table})
	t.FlushChain(stamp)
	t.AddRule(&nftables.Rule{Table: t.Table, Chain: stamp, UserData: t.digest, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}})
	return errors.Join(t.errs...)
}

// addNAT makes what changes addresses: with it the kernel keeps track of every connection of
// the router, each packet of which is looked up.
func (t *table) addNAT(ranges []netip.Prefix, routes []route) {
	pre := t.chain("lead", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest)
	post := t.chain("answer", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	for _, f := range []family{v4, v6} {
		set, elements := f.singleEndpoints(t.Table, routes)
		t.refill(set, elements)
		t.rule(pre, f.lookupSingle(set))
	}
	for _, r := range routes {
		if len(r.to) < 2 {
			continue
		}
		places := r.slots()
		set, elements := r.targets(t.Table, places)
		t.set(set, elements)
		t.rule(pre, r.toPort(), r.pickSlot(len(places)), r.dnatBySlot(set))
	}
	for _, p := range ranges {
		f := familyOf(p.Addr())
		if set, elements := hairpinSet(t.Table, f, routes); len(elements) > 0 {
			t.set(set, elements)
			t.rule(post, f.matchHairpin(set), f.snat(p.Addr()))
		}
	}
}

func (t *table) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	c := t.AddChain(&nftables.Chain{Name: name, Table: t.Table, Type: kind, Hooknum: hook, Priority: priority})
	t.FlushChain(c)
	return c
}

func (t *table) set(s *nftables.Set, elements []nftables.SetElement) {
	if err := t.AddSet(s, elements); err != nil {
		t.errs = append(t.errs, err)
	}
}

// maxElements is how many elements a message has room for, whose parts have 64 KiB.
const maxElements = 500

// refill replaces the elements of a set that stays.
func (t *table) refill(s *nftables.Set, elements []nftables.SetElement) {
	t.set(s, nil)
	t.FlushSet(s)
	for part := range slices.Chunk(elements, maxElements) {
		if err := t.SetAddElements(s, part); err != nil {
			t.errs = append(t.errs, err)
		}
	}
}

func (t *table) rule(c *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	t.AddRule(&nftables.Rule{Table: t.Table, Chain: c, Exprs: all})
}
