package router

import (
	"slices"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/netns/ipam"
)

// The source check comes before the destination: nothing that a pod sends is delivered before its
// source is checked, and packets of established connections are delivered soon after.
func TestSourceIsCheckedFirst(t *testing.T) {
	pool, err := ipam.ChoosePool(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []egressMode{viaProcess, viaMasquerade, viaMasqueradeNoSocket} {
		list := podRules(7, pool, pool.Addresses(7), by)
		begin := slices.IndexFunc(list, func(rule []expr.Any) bool { // the following rules apply to the pod's device
			c, ok := rule[1].(*expr.Cmp)
			return ok && c.Op == expr.CmpOpNeq
		})
		if begin < 0 {
			t.Fatalf("by %q: no rule ends what comes by other devices", by)
		}
		list = list[begin+1:]
		for _, f := range nft.Families {
			source := slices.IndexFunc(list, func(rule []expr.Any) bool {
				return loads(rule, f.SourceOffset, f.AddrSize) && !loadsDestination(rule, f) && verdictOf(rule) == expr.VerdictDrop
			})
			delivered := slices.IndexFunc(list, func(rule []expr.Any) bool {
				return slices.ContainsFunc(rule, func(e expr.Any) bool {
					take, ok := e.(*expr.TProxy)
					return ok && take.Family == f.Proto
				})
			})
			if source < 0 || delivered < source || delivered > source+2 {
				t.Errorf("by %q, family %d: the source is looked at in rule %d, the first that delivers is %d", by, f.Proto, source, delivered)
				continue
			}
			for i, rule := range list[:source] {
				other := !slices.ContainsFunc(rule, isOf(f)) && slices.ContainsFunc(rule, func(e expr.Any) bool { return isOf(nft.IPv4)(e) || isOf(nft.IPv6)(e) })
				if verdictOf(rule) != expr.VerdictDrop && !other {
					t.Errorf("by %q, family %d: rule %d lets something pass before its source is looked at", by, f.Proto, i)
				}
			}
		}
	}
}

// loads reports whether a rule reads a part of the network header.
func loads(rule []expr.Any, offset, length uint32) bool {
	return slices.ContainsFunc(rule, func(e expr.Any) bool {
		p, ok := e.(*expr.Payload)
		return ok && p.Base == expr.PayloadBaseNetworkHeader && p.Offset == offset && p.Len == length
	})
}

// loadsDestination reports whether a rule reads a packet's destination.
func loadsDestination(rule []expr.Any, f nft.Family) bool {
	return slices.ContainsFunc(rule, func(e expr.Any) bool {
		p, ok := e.(*expr.Payload)
		return ok && p.Base == expr.PayloadBaseNetworkHeader && p.Offset == f.SourceOffset+f.AddrSize
	})
}

// isOf returns a predicate that reports whether a comparison is with a family's number.
func isOf(f nft.Family) func(expr.Any) bool {
	return func(e expr.Any) bool {
		c, ok := e.(*expr.Cmp)
		return ok && c.Op == expr.CmpOpEq && slices.Equal(c.Data, []byte{f.Proto})
	}
}

func verdictOf(rule []expr.Any) expr.VerdictKind {
	if v, ok := rule[len(rule)-1].(*expr.Verdict); ok {
		return v.Kind
	}
	return expr.VerdictContinue
}
