package masquerade

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/netpolicy"
	"github.com/podrun/podrun/netns/router"
)

// Network policies concern what the kernel masquerades: new connections, running ones, and ICMP.
func TestPolicies(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	server, _ := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	nettest.ServePacket(t, w.Remote, server, nettest.EchoPacket)
	addresses := w.Pool.Addresses(1)
	apply := func(cidr string) {
		t.Helper()
		is := netpolicy.Isolation{Device: router.DeviceIndex(1), Own: []netip.Addr{addresses.V4, addresses.V6}, Node: []netip.Addr{w.Pool.Gateway().V4}, Egress: netpolicy.Filter{Isolated: true, Allowed: []netpolicy.Allow{
			{Blocks: []netpolicy.Block{{CIDR: netip.MustParsePrefix(cidr)}}},
		}}}
		if _, err := netpolicy.Apply(w.RouterNS, []netpolicy.Isolation{is}, is.Device, func() ([]uint16, error) { return netpolicy.ListeningPorts(p.ns) }); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(network string) error {
		c, err := nettest.Dial(p.ns, network, server)
		if err != nil {
			return err
		}
		defer c.Close()
		return nettest.RoundTrip(c, text(16))
	}
	running := nettest.Connect(t, p.ns, "tcp", server)
	for _, step := range []string{"", "10.77.0.0/16"} {
		if step != "" {
			apply(step)
		}
		if err := errors.Join(nettest.RoundTrip(running, text(16)), ask("tcp"), ask("udp"), ping(p.ns, nettest.RemoteAddr)); err != nil {
			t.Errorf("allowed by %q: %v", step, err)
		}
	}
	apply("192.0.2.0/24")
	if err := nettest.RoundTrip(running, text(16)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a running connection: %v, want a reset", err)
	}
	if err := ask("tcp"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("TCP: %v", err)
	}
	if err := ask("udp"); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("UDP: %v", err)
	}
	if err := ping(p.ns, nettest.RemoteAddr); err == nil {
		t.Error("ping is answered")
	}
}
