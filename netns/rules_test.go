package netns

import (
	"slices"
	"testing"

	"github.com/google/nftables/expr"
)

// Whose address it is comes before whom it is for: nothing that a pod sends is delivered
// before its source is looked at, and what belongs to a connection is delivered soon after.
func TestTheSourceIsLookedAtFirst(t *testing.T) {
	pool, err := ChoosePool(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []exit{byProcess, byKernel, byPlainKernel} {
		list := rules(7, pool, pool.Of(7), by)
		begin := slices.IndexFunc(list, func(rule []expr.Any) bool { // what follows is of the pod's device
			c, ok := rule[1].(*expr.Cmp)
			return ok && c.Op == expr.CmpOpNeq
		})
		if begin < 0 {
			t.Fatalf("by %q: no rule ends what comes by other devices", by)
		}
		list = list[begin+1:]
		for _, f := range families {
			source := slices.IndexFunc(list, func(rule []expr.Any) bool {
				return loads(rule, f.source, f.size) && !loadsDestination(rule, f) && verdictOf(rule) == expr.VerdictDrop
			})
			delivered := slices.IndexFunc(list, func(rule []expr.Any) bool {
				return slices.ContainsFunc(rule, func(e expr.Any) bool {
					take, ok := e.(*expr.TProxy)
					return ok && take.Family == f.number
				})
			})
			if source < 0 || delivered < source || delivered > source+2 {
				t.Errorf("by %q, family %d: the source is looked at in rule %d, the first that delivers is %d", by, f.number, source, delivered)
				continue
			}
			for i, rule := range list[:source] {
				other := !slices.ContainsFunc(rule, isOf(f)) && slices.ContainsFunc(rule, func(e expr.Any) bool { return isOf(v4)(e) || isOf(v6)(e) })
				if verdictOf(rule) != expr.VerdictDrop && !other {
					t.Errorf("by %q, family %d: rule %d lets something pass before its source is looked at", by, f.number, i)
				}
			}
		}
	}
}

// loads says whether a rule looks at a part of the network's header.
func loads(rule []expr.Any, offset, length uint32) bool {
	return slices.ContainsFunc(rule, func(e expr.Any) bool {
		p, ok := e.(*expr.Payload)
		return ok && p.Base == expr.PayloadBaseNetworkHeader && p.Offset == offset && p.Len == length
	})
}

// loadsDestination says whether a rule looks at whom a packet is for.
func loadsDestination(rule []expr.Any, f ipFamily) bool {
	return slices.ContainsFunc(rule, func(e expr.Any) bool {
		p, ok := e.(*expr.Payload)
		return ok && p.Base == expr.PayloadBaseNetworkHeader && p.Offset == f.source+f.size
	})
}

// isOf says of a comparison whether it is for a family's number.
func isOf(f ipFamily) func(expr.Any) bool {
	return func(e expr.Any) bool {
		c, ok := e.(*expr.Cmp)
		return ok && c.Op == expr.CmpOpEq && slices.Equal(c.Data, []byte{f.number})
	}
}

func verdictOf(rule []expr.Any) expr.VerdictKind {
	if v, ok := rule[len(rule)-1].(*expr.Verdict); ok {
		return v.Kind
	}
	return expr.VerdictContinue
}
