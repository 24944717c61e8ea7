package services

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
)

// tableName is the name of the table in the router's namespace.
const tableName = "services"

// Apply makes the router direct connections as a catalog describes, in one transaction: no packet
// meets an intermediate state. ranges are the addresses of Services in the pods' network; Services of a
// Kubernetes cluster have others. Packets to an address of a range, or of a Service, without a route are
// refused; the first address of each range is never assigned. If the table is up to date, Apply changes
// nothing and changed is false.
func Apply(router string, ranges []netip.Prefix, d Catalog) (changed bool, err error) {
	err = nsthread.Do(func() error {
		routes, visitors := d.routes(), d.visitors()
		mark := append(digest(ranges, routes), digest(visitors)...)
		old, never, err := currentDigest(tableName)
		if err != nil || bytes.Equal(mark, old) {
			return err
		}
		changed = true
		sameRoutes := len(old) == len(mark) && bytes.Equal(mark[:sha256.Size], old[:sha256.Size]) // each start of a pod changes the visitors
		err = nft.Transact(func(c *nftables.Conn) error {
			t := &table{Table: nft.Table{Conn: c}, name: tableName, digest: mark, empty: len(routes) == 0 && never, visitors: visitors}
			if sameRoutes {
				return t.replaceVisitors()
			}
			return t.build(ranges, routes)
		})
		if err != nil || sameRoutes {
			return err
		}
		return forgetStale(routes)
	}, router)
	if err != nil {
		return false, fmt.Errorf("redirect connections to Services: %w", err)
	}
	return changed, nil
}

// digest identifies a part of the content of a table.
func digest(content ...any) []byte {
	h := sha256.New()
	fmt.Fprintln(h, content...)
	return h.Sum(nil)
}

// currentDigest returns the digest of the current table of a name; nil if it cannot be read. never reports
// that the table does not exist: then the kernel lists nothing and returns no error.
func currentDigest(name string) (mark []byte, never bool, err error) {
	c, err := nftables.New()
	if err != nil {
		return nil, false, err
	}
	t := &nftables.Table{Name: name, Family: nftables.TableFamilyINet}
	rules, err := c.GetRules(t, &nftables.Chain{Name: "stamp", Table: t})
	if err != nil || len(rules) != 1 {
		return nil, err == nil && len(rules) == 0, nil // else the whole table is replaced
	}
	return rules[0].UserData, false, nil
}

// table is a table under construction.
type table struct {
	nft.Table
	name     string
	digest   []byte
	empty    bool         // it has no routes and never had any
	visitors []netip.Addr // that reach the Services of the cluster
	errs     []error
}

// build replaces the content of each chain. The table and the chains stay, which avoids waiting for
// the kernel to release them.
func (t *table) build(ranges []netip.Prefix, routes []route) error {
	t.open()
	after := nftables.ChainPriority(int32(*nftables.ChainPriorityNATDest) + 1)
	none := t.chain("refuse", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, &after)
	out := t.chain("keep", nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityFilter)
	for _, rule := range dropRedirects() {
		t.AddRule(out, rule)
	}
	outside, refused := t.mark(ranges, routes)
	for _, match := range outside {
		t.AddRule(none, match, nft.Verdict(expr.VerdictAccept))
	}
	for _, p := range ranges {
		refused = append(refused, familyOf(p.Addr()).MatchDestination(p))
	}
	for _, match := range refused {
		for _, rule := range nft.Reject(match, unix.NFT_REJECT_ICMPX_PORT_UNREACH) {
			t.AddRule(none, rule)
		}
	}
	if !t.empty {
		t.addNAT(ranges, routes)
	}
	return t.finish()
}

// open adds the table if it does not exist.
func (t *table) open() {
	t.Table.Table = t.AddTable(&nftables.Table{Name: t.name, Family: nftables.TableFamilyINet})
}

// finish stamps the table with its digest.
func (t *table) finish() error {
	stamp := t.chain("stamp", "", nil, nil)
	t.Conn.AddRule(&nftables.Rule{Table: stamp.Table, Chain: stamp, UserData: t.digest, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}})
	return errors.Join(t.errs...)
}

// replaceVisitors replaces the visitors of an existing table.
func (t *table) replaceVisitors() error {
	t.open()
	for _, f := range []family{v4, v6} {
		t.refill(f.visitorSet(t))
	}
	return t.finish()
}

// mark marks packets before the pods' own rules, which leave the marked ones as they do other packets: those to
// Services with addresses outside ranges to the router, and those to Services with endpoints outside the pods'
// network to the supervisor of the client. It returns matches of the latter, and of all packets to addresses
// outside ranges.
func (t *table) mark(ranges []netip.Prefix, routes []route) (outside, foreign [][]expr.Any) {
	if t.empty {
		return nil, nil
	}
	before := nftables.ChainPriority(int32(*nftables.ChainPriorityMangle) - 1)
	chain := t.chain("mark", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, &before)
	for _, f := range []family{v4, v6} {
		t.refuseStrangers(chain, f, routes)
		if set, elements := f.foreignSet(t.Table.Table, ranges, routes); len(elements) > 0 {
			t.refill(set, elements)
			match := f.matchForeign(set)
			t.AddRule(chain, match, nft.SetMark(nft.ServiceMark))
			foreign = append(foreign, match)
		}
		if set, elements := f.outsideSet(t.Table.Table, routes); len(elements) > 0 {
			t.refill(set, elements)
			match := f.matchOutside(set)
			t.AddRule(chain, match, nft.SetMark(nft.ProxyMark))
			outside = append(outside, match)
		}
	}
	return outside, foreign
}

// refuseStrangers refuses packets to the addresses of the cluster's Services, except packets of visitors.
func (t *table) refuseStrangers(chain *nftables.Chain, f family, routes []route) {
	ofCluster := slices.DeleteFunc(slices.Clone(routes), func(r route) bool { return !r.cluster })
	var addresses []netip.Addr
	for _, r := range ofCluster {
		addresses = append(addresses, r.from.Addr())
	}
	to, elements := f.addressSet(t.Table.Table, "cluster", addresses)
	if len(elements) == 0 {
		return
	}
	t.refill(to, elements)
	from, elements := f.visitorSet(t)
	t.refill(from, elements)
	for _, rule := range nft.Reject(f.matchStrangers(to, from), unix.NFT_REJECT_ICMPX_PORT_UNREACH) {
		t.AddRule(chain, rule)
	}
}

// addNAT adds the chains that change addresses. With them the kernel tracks every connection of the
// router and looks up each packet.
func (t *table) addNAT(ranges []netip.Prefix, routes []route) {
	t.lead(t.chain("lead", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest), routes)
	post := t.chain("answer", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	for _, p := range ranges {
		f := familyOf(p.Addr())
		if set, elements := hairpinSet(t.Table.Table, f, routes); len(elements) > 0 {
			t.set(set, elements)
			t.AddRule(post, f.matchHairpin(set), nft.SourceNAT(p.Addr()))
		}
	}
}

// lead adds the rules that redirect connections to endpoints.
func (t *table) lead(chain *nftables.Chain, routes []route) {
	for _, f := range []family{v4, v6} {
		set, elements := f.singleEndpoints(t.Table.Table, routes)
		t.refill(set, elements)
		t.AddRule(chain, f.lookupSingle(set))
	}
	clients := t.addClientSets(routes)
	for _, r := range routes {
		if len(r.to) < 2 || r.outside {
			continue
		}
		targets := func(places []netip.AddrPort) *nftables.Set {
			set, elements := r.targets(t.Table.Table, places)
			t.set(set, elements)
			return set
		}
		if f := familyOf(r.from.Addr()); r.affinity > 0 {
			t.AddRule(chain, r.toPort(), r.recordClient(clients[f.AddrSize]))
			t.AddRule(chain, r.toPort(), r.lookupClient(clients[f.AddrSize]), r.dnatByNumber(f.slot(), targets(bySlot(r.to))))
		}
		// Each table begins its turns anew, at any endpoint: between rare connections there may always be another table.
		first := rand.IntN(len(r.to))
		t.AddRule(chain, r.toPort(), pickInTurn(len(r.to)), r.dnatByNumber(reg, targets(slices.Concat(r.to[first:], r.to[:first]))))
	}
}

// addClientSets adds the sets of clients by the sizes of their addresses, if a Service has affinity. Clients uses them, too.
func (t *table) addClientSets(routes []route) (sets map[uint32]*nftables.Set) {
	sets = map[uint32]*nftables.Set{}
	if !slices.ContainsFunc(routes, func(r route) bool { return r.affinity > 0 }) {
		return sets
	}
	for _, f := range []family{v4, v6} {
		sets[f.AddrSize] = f.clientSet(t.Table.Table)
		t.set(sets[f.AddrSize], nil)
	}
	return sets
}

func (t *table) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	c := t.AddChain(name, kind, hook, priority)
	t.FlushChain(c)
	return c
}

func (t *table) set(s *nftables.Set, elements []nftables.SetElement) {
	if err := t.AddSet(s, elements); err != nil {
		t.errs = append(t.errs, err)
	}
}

// maxElements is the number of elements that fit in a message, whose parts have 64 KiB.
const maxElements = 500

// refill replaces the elements of an existing set.
func (t *table) refill(s *nftables.Set, elements []nftables.SetElement) {
	t.set(s, nil)
	t.FlushSet(s)
	for part := range slices.Chunk(elements, maxElements) {
		if err := t.SetAddElements(s, part); err != nil {
			t.errs = append(t.errs, err)
		}
	}
}
