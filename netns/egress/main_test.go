package egress

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is what a test's pods live in. This process's network is the host's.
type world struct {
	t testing.TB
	*nettest.World
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{t, nettest.NewWorld(t, nettest.Here)}
}

// testPod is a network namespace that is attached to the router.
type testPod struct {
	*world
	ns     string
	slot   netns.Slot
	own    netns.Addresses
	egress *Egress
}

func (w *world) attach(s netns.Slot) *testPod {
	w.t.Helper()
	return &testPod{world: w, ns: w.NewPod(w.t, s), slot: s, own: w.Pool.Of(s)}
}

// pod is one whose traffic is carried.
func (w *world) pod(s netns.Slot, change ...func(*Config)) *testPod {
	w.t.Helper()
	p := w.attach(s)
	wires, err := w.Router.Wire(w.Pool, s)
	if err != nil {
		w.t.Fatal(err)
	}
	c := Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: s}
	for _, f := range change {
		f(&c)
	}
	if p.egress, err = Serve(c, wires); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.egress.Close() })
	return p
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func netipPort(a netip.Addr, port int) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }
