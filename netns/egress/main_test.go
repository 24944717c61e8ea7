package egress

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// testbed is the environment of a test's pods. This process's network stands for the host's.
type testbed struct {
	t testing.TB
	*nettest.Testbed
}

func newTestbed(t testing.TB) *testbed {
	t.Helper()
	return &testbed{t, nettest.NewTestbed(t, nettest.HostNetNS)}
}

// testPod is a network namespace that is attached to the router.
type testPod struct {
	*testbed
	ns     string
	slot   ipam.Slot
	own    ipam.Addresses
	egress *Proxy
}

func (w *testbed) attach(s ipam.Slot) *testPod {
	w.t.Helper()
	return &testPod{testbed: w, ns: w.NewPod(w.t, s), slot: s, own: w.Pool.Addresses(s)}
}

// pod returns a pod whose traffic a Proxy handles.
func (w *testbed) pod(s ipam.Slot, change ...func(*Config)) *testPod {
	w.t.Helper()
	p := w.attach(s)
	traffic, err := w.Router.OpenTraffic(w.Pool, s)
	if err != nil {
		w.t.Fatal(err)
	}
	c := Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: s}
	for _, f := range change {
		f(&c)
	}
	if p.egress, err = Start(c, traffic); err != nil {
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
