package runner

import (
	"net/netip"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
)

// A supervisor that is killed while it removes a sandbox may have had the keeper drop some of
// the wires: its successor goes on with the removal, whatever is left of them.
func TestASandboxIsRemovedWithoutAllOfItsWires(t *testing.T) {
	testenv.NoLeaks(t)
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	place := dirs.Pod("default", "web")
	if err := os.MkdirAll(place.RuntimeDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	own := []netip.Addr{netip.MustParseAddr("10.99.0.7"), netip.MustParseAddr("fd99::7")}
	if err := place.WriteLease(store.Lease{Slot: 7, Addresses: own, Leaves: true}); err != nil {
		t.Fatal(err)
	}
	for dropped := range len(netns.WireNames) + 1 {
		e := &engine{plan: newPlan(nil, nil), store: place, estate: &estate{}}
		s := e.newSandbox(e.plan, 0)
		kept := map[string]bool{}
		for _, name := range netns.WireNames[dropped:] {
			kept[wirePrefix+name] = true
		}
		err := s.reconnectToRemove(func(name string) (*os.File, bool) {
			if !kept[name] {
				return nil, false
			}
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			return f, true
		})
		if err != nil {
			t.Errorf("%d wires dropped: %v", dropped, err)
		}
		if s.egress != nil {
			t.Errorf("%d wires dropped: it is served", dropped)
		}
		if some := len(kept) > 0; some != (s.slot == 7 && s.leaves && s.pool.V4 == netip.MustParsePrefix("10.99.0.0/16")) {
			t.Errorf("%d wires dropped: slot %d in %v", dropped, s.slot, s.pool)
		}
	}
}
