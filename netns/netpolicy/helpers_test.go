package netpolicy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// parseQuestion parses "from to PROTOCOL/port"; the protocol may be missing.
func parseQuestion(t *testing.T, q string) (from, to, protocol string, port uint16) {
	t.Helper()
	words := strings.Fields(q + " TCP/80")
	protocol, number, _ := strings.Cut(words[2], "/")
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return words[0], words[1], protocol, uint16(n)
}

// testbed is a router with the pods of a Catalog, whose other traffic leaves through a proxy, and
// another host.
type testbed struct {
	t *testing.T
	*nettest.Testbed
	catalog *Catalog
	pods    map[string]string // networks by the pods' names
}

func newTestbed(t *testing.T, names ...string) *testbed {
	t.Helper()
	w := &testbed{t, nettest.NewTestbed(t, nettest.HostNetNS), &Catalog{}, map[string]string{}}
	for i, name := range names {
		s := ipam.Slot(i + 1)
		addresses := w.Pool.Addresses(s)
		w.catalog.Pods = append(w.catalog.Pods, Pod{
			Namespace: "default", Name: name, Labels: labels("name", name), Addresses: []netip.Addr{addresses.V4, addresses.V6}, Device: router.DeviceIndex(s),
			Node: []netip.Addr{w.Pool.Gateway().V4, w.Pool.Gateway().V6},
		})
		w.pods[name] = w.NewPod(t, s)
		traffic, err := w.Router.OpenTraffic(w.Pool, s)
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := egress.Start(egress.Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: s}, traffic)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
	}
	return w
}

// apply enforces policies, and reports whether that changed the rules.
func (w *testbed) apply(policies ...Policy) (changed bool) {
	w.t.Helper()
	w.catalog.Policies = policies
	all := w.catalog.Isolate()
	if len(all) == 0 {
		changed, err := Apply(w.RouterNS, nil, 0, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		return changed
	}
	for _, p := range w.catalog.Pods { // the supervisor of each pod
		ns := w.pods[p.Name]
		did, err := Apply(w.RouterNS, all, p.Device, func() ([]uint16, error) { return ListeningPorts(ns) })
		if err != nil {
			w.t.Fatal(err)
		}
		changed = changed || did
	}
	return changed
}

// address returns an address of a pod, or of the other host.
func (w *testbed) address(name string, six bool, port int) string {
	hostAddrs := []netip.Addr{netip.MustParseAddr(nettest.RemoteAddr), netip.MustParseAddr(nettest.RemoteAddr6)}
	if name != "remote" {
		hostAddrs = w.catalog.find(name)
	}
	if six {
		return netip.AddrPortFrom(hostAddrs[1], uint16(port)).String()
	}
	return netip.AddrPortFrom(hostAddrs[0], uint16(port)).String()
}

func (w *testbed) network(name string) string {
	if name == "remote" {
		return w.Remote
	}
	return w.pods[name]
}

// serve answers connections and datagrams with what they contain.
func (w *testbed) serve(name string, ports ...int) {
	w.t.Helper()
	for _, port := range ports {
		address := fmt.Sprintf(":%d", port)
		nettest.Serve(w.t, w.network(name), address, nettest.Echo)
		nettest.ServePacket(w.t, w.network(name), address, nettest.EchoPacket)
	}
}

// try sends a word by all protocols and families that q asks for, and back.
func (w *testbed) try(from, to, protocol string, port uint16, six bool) error {
	c, err := nettest.Dial(w.network(from), strings.ToLower(protocol), w.address(to, six, int(port)))
	if err != nil {
		return err
	}
	defer c.Close()
	return nettest.RoundTrip(c, []byte("word"))
}

// check checks which connections succeed: "from to PROTOCOL/port".
func (w *testbed) check(want bool, questions ...string) {
	w.t.Helper()
	for _, q := range questions {
		from, to, protocol, port := parseQuestion(w.t, q)
		for _, six := range []bool{false, true} {
			if err := w.try(from, to, protocol, port, six); (err == nil) != want {
				w.t.Errorf("%s (IPv6 %v): %v, want success %v", q, six, err, want)
			}
		}
	}
}

// dial opens a connection that is in use.
func (w *testbed) dial(from, to string, port int, six bool) net.Conn {
	w.t.Helper()
	c := nettest.Connect(w.t, w.network(from), "tcp", w.address(to, six, port))
	if err := nettest.RoundTrip(c, []byte("word")); err != nil {
		w.t.Fatal(err)
	}
	return c
}
