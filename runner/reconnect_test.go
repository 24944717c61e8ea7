package runner

import (
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/netns/router"
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
	if err := place.WriteLease(store.Lease{Slot: 7, Addresses: own, Masqueraded: true}); err != nil {
		t.Fatal(err)
	}
	for dropped := range len(router.TrafficNames) + 1 {
		e := &engine{plan: newPlan(nil, nil), store: place, estate: &estate{}}
		kept := map[string]uintptr{}
		for _, name := range router.TrafficNames[dropped:] {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			kept[wirePrefix+name] = uintptr(fd)
		}
		some := len(kept) > 0
		a := &adoption{engine: e, was: &stage.Inherited{Died: true, Files: kept}, known: lifecycle.Observed{Sandbox: lifecycle.SandboxRemoving}}
		if err := a.sandbox(); err != nil {
			t.Errorf("%d wires dropped: %v", dropped, err)
			continue
		}
		s := e.sandbox
		if s.egress != nil {
			t.Errorf("%d wires dropped: it is served", dropped)
		}
		if some != (s.slot == 7 && s.leaves && s.pool.V4 == netip.MustParsePrefix("10.99.0.0/16")) {
			t.Errorf("%d wires dropped: slot %d in %v", dropped, s.slot, s.pool)
		}
		if len(a.again) != 1 || a.again[0].Kind != lifecycle.RemoveSandbox {
			t.Errorf("%d wires dropped: %v is done again", dropped, a.again)
		}
	}
}
