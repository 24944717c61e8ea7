package uplink

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is what a test's pods live in. This process's network is the host's, as this
// process is root of the user namespace that has it.
type world struct {
	t testing.TB
	*nettest.World
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t, nettest.NewWorld(t, nettest.Here)}
	t.Cleanup(func() {
		if n := tables(t); n != 0 {
			t.Errorf("%d tables are left", n)
		}
	})
	w.removed(w.Router)
	if err := Check(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(forward, []byte("0"), 0); err != nil {
			t.Error(err)
		}
	})
	return w
}

// removed has a router's uplink go with the test.
func (w *world) removed(r netns.Router) {
	w.t.Cleanup(func() {
		if err := Remove(r); err != nil {
			w.t.Error(err)
		}
	})
}

// testPod is a network namespace whose traffic leaves by the kernel.
type testPod struct {
	*world
	ns     string
	slot   netns.Slot
	egress *egress.Egress
}

// attach is a pod's network.
func (w *world) attach(s netns.Slot) *testPod {
	w.t.Helper()
	return &testPod{world: w, ns: w.NewPod(w.t, s), slot: s}
}

func (w *world) pod(s netns.Slot, change ...func(*egress.Config)) *testPod {
	w.t.Helper()
	mtu, err := Make(w.Router)
	if err != nil {
		w.t.Fatal(err)
	}
	p := w.attach(s)
	wires, err := w.Router.WireOut(p.ns, w.Pool, s, mtu)
	if err != nil {
		w.t.Fatal(err)
	}
	p.serve(wires, change...)
	return p
}

// serve has the pod served by what is a supervisor's.
func (p *testPod) serve(wires netns.Wires, change ...func(*egress.Config)) {
	p.t.Helper()
	c := egress.Config{RouterNS: p.RouterNS, Pool: p.Pool, Slot: p.slot}
	for _, f := range change {
		f(&c)
	}
	var err error
	if p.egress, err = egress.Serve(c, wires); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.egress.Close)
}

// idle says whether nothing of the pod goes by the supervisor.
func (p *testPod) idle() bool {
	idle := p.egress.Pause()
	if idle {
		p.egress.Resume()
	}
	return idle
}

// answering is a server inside a network that answers each connection with what comes, and
// tells who the clients are.
func answering(t testing.TB, ns, at string) (to string, clients <-chan netip.Addr) {
	t.Helper()
	told := make(chan netip.Addr, 100)
	l := nettest.Serve(t, ns, at, func(c *net.TCPConn) {
		told <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		nettest.Echo(c)
	})
	return l.Addr().String(), told
}

// text is so many bytes.
func text(size int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), size/16) }

// tables is how many are uplinks' in the host's network.
func tables(t testing.TB) (n int) {
	t.Helper()
	names, err := tableNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if isOurs(name) {
			n++
		}
	}
	return n
}
