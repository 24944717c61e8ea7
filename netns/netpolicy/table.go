package netpolicy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
)

// tableName is the name of the table in the router's namespace.
const tableName = "policies"

// Apply enforces isolations in the router, by the path of its namespace, in one transaction: no packet meets an intermediate state.
// Without any it removes the rules. If the rules are up to date it changes nothing and changed is
// false.
//
// index is the device of the caller's pod, and served returns the TCP ports on which that pod listens; nil: the pod
// is new, and has no connections.
func Apply(router string, all []Isolation, index int, served func() ([]uint16, error)) (changed bool, err error) {
	err = nsthread.Do(func() error {
		old, err := currentTable()
		if err != nil {
			return err
		}
		if len(all) == 0 {
			changed = old.table != nil
			return old.remove()
		}
		elements, err := old.servedPorts(all, index, served)
		if err != nil {
			return err
		}
		stamp := digest(all)
		if bytes.Equal(stamp, old.stamp) && equalKeys(elements, old.served) {
			return nil
		}
		changed = true
		return nft.Transact(func(c *nftables.Conn) error {
			t := &table{Table: nft.Table{Conn: c}, sets: map[string]*nftables.Set{}}
			return t.build(all, elements, stamp)
		})
	}, router)
	if err != nil {
		return false, fmt.Errorf("enforce network policies: %w", err)
	}
	return changed, nil
}

// servedPorts returns the elements of servedSet. Only a pod that existed before the table can have connections whose
// first packet did not pass the rules, and so ports that it serves: a segment of another pod that belongs to no
// connection is sent by it, whatever its port.
func (x existing) servedPorts(all []Isolation, index int, served func() ([]uint16, error)) (elements []nftables.SetElement, err error) {
	isolated, earlier, listed := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i := range all {
		isolated[all[i].Device] = true
	}
	for _, e := range x.served {
		device, kind := parseServed(e)
		if device == index && served == nil || kind != earlierPod && !isolated[device] {
			continue // the device is another pod's now, or has no rules
		}
		earlier[device] = earlier[device] || kind == earlierPod
		listed[device] = listed[device] || kind == listedPod
		elements = append(elements, e)
	}
	if x.table == nil {
		links, err := net.Interfaces()
		if err != nil {
			return nil, fmt.Errorf("list the devices of pods: %w", err)
		}
		for _, link := range links {
			if link.Index != index || served != nil {
				earlier[link.Index] = true
				elements = append(elements, earlierElement(link.Index))
			}
		}
	}
	for i := range all {
		device := all[i].Device
		if listed[device] || earlier[device] && device != index { // another supervisor lists its pod's ports
			continue
		}
		var ports []uint16
		if earlier[device] {
			if ports, err = served(); err != nil {
				return nil, err
			}
		}
		elements = append(elements, servedElements(device, ports)...)
	}
	return elements, nil
}

// equalKeys reports whether two lists have the same elements.
func equalKeys(a, b []nftables.SetElement) bool {
	keys := map[string]bool{}
	for _, e := range a {
		keys[string(e.Key)] = true
	}
	return len(a) == len(b) && !slices.ContainsFunc(b, func(e nftables.SetElement) bool { return !keys[string(e.Key)] })
}

// rulesVersion changes with every change of the rules that an Isolation results in: a table of
// another version is replaced.
const rulesVersion = 2

// digest identifies the rules of isolations.
func digest(all []Isolation) []byte {
	h := sha256.New()
	fmt.Fprintln(h, rulesVersion, all)
	return h.Sum(nil)
}

// existing is the table in the kernel.
type existing struct {
	table  *nftables.Table // nil: there is none
	stamp  []byte          // nil: it cannot be read
	served []nftables.SetElement
}

func currentTable() (old existing, err error) {
	tables, err := nft.ListTables(nftables.TableFamilyINet, func(name string) bool { return name == tableName })
	if err != nil || len(tables) == 0 {
		return old, err
	}
	c, err := nftables.New()
	if err != nil {
		return old, err
	}
	old.table = tables[0]
	if old.served, err = c.GetSetElements(&nftables.Set{Table: old.table, Name: servedSet}); err != nil {
		return existing{table: old.table}, nil // the whole table is replaced
	}
	rules, err := c.GetRules(old.table, &nftables.Chain{Name: "stamp", Table: old.table})
	if err == nil && len(rules) == 1 {
		old.stamp = rules[0].UserData
	}
	return old, nil
}

func (x existing) remove() error {
	if x.table == nil {
		return nil
	}
	return nft.DeleteTables([]*nftables.Table{x.table})
}

// table is a table under construction.
type table struct {
	nft.Table
	sets map[string]*nftables.Set // of addresses, by content
	errs []error
}

// build replaces the table.
func (t *table) build(all []Isolation, served []nftables.SetElement, stamp []byte) error {
	is := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	t.AddTable(is) // a missing table cannot be removed
	t.DelTable(is)
	t.Table.Table = t.AddTable(is)
	t.addSet(&nftables.Set{Table: t.Table.Table, Name: servedSet, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeIFIndex, nftables.TypeInetService)}, served)
	listed := map[int]bool{}
	for _, e := range served {
		if device, kind := parseServed(e); kind == listedPod {
			listed[device] = true
		}
	}
	var from, to []nftables.SetElement
	for i := range all {
		t.addPod(&all[i], listed[all[i].Device])
		from, to = append(from, jumpTo("from", &all[i])), append(to, jumpTo("to", &all[i]))
	}
	byDevice := func(name string, key expr.MetaKey, elements []nftables.SetElement) []expr.Any {
		set := &nftables.Set{Table: t.Table.Table, Name: name, IsMap: true, KeyType: nftables.TypeIFIndex, DataType: nftables.TypeVerdict}
		t.addSet(set, elements)
		return []expr.Any{&expr.Meta{Key: key, Register: reg}, &expr.Lookup{SourceRegister: reg, IsDestRegSet: true, SetName: set.Name, SetID: set.ID}}
	}
	sent, received := byDevice("from", expr.MetaKeyIIF, from), byDevice("to", expr.MetaKeyOIF, to)
	base := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority, rules ...[]expr.Any) {
		t.AddChain(name, nftables.ChainTypeFilter, hook, priority, rules...)
	}
	// Sent packets have the destination that a Service leads to, and do not belong to a transparent
	// socket yet, about which the kernel would send no ICMP error.
	base("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest+1), markSYN(), sent)
	base("forward", nftables.ChainHookForward, nftables.ChainPriorityFilter, received)
	// A reset by the router concerns no policy: it may end a connection whose packets are rejected.
	base("output", nftables.ChainHookOutput, nftables.ChainPriorityFilter, markSYN(), append(matchReset(), nft.Verdict(expr.VerdictAccept)...), received)
	c := t.newChain("stamp")
	t.Conn.AddRule(&nftables.Rule{Table: c.Table, Chain: c, UserData: stamp, Exprs: accept()})
	return errors.Join(t.errs...)
}

// jumpTo returns the element of a map that leads from a pod's device to one of its chains.
func jumpTo(name string, is *Isolation) nftables.SetElement {
	return nftables.SetElement{
		Key:         binaryutil.NativeEndian.PutUint32(uint32(is.Device)),
		VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: chain(name, is)},
	}
}

func (t *table) newChain(name string) *nftables.Chain { return t.AddChain(name, "", nil, nil) }

// maxElements is the number of elements that fit in a message, whose parts have 64 KiB.
const maxElements = 500

func (t *table) addSet(s *nftables.Set, elements []nftables.SetElement) {
	if err := t.AddSet(s, nil); err != nil {
		t.errs = append(t.errs, err)
	}
	for part := range slices.Chunk(elements, maxElements) {
		if err := t.SetAddElements(s, part); err != nil {
			t.errs = append(t.errs, err)
		}
	}
}
