package masquerade

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// ping sends one echo request from a namespace and waits for its answer.
func ping(ns, to string) error {
	var file *os.File
	err := nsthread.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), "ping")
		return unix.Connect(fd, rawsys.Sockaddr(netip.AddrPortFrom(netip.MustParseAddr(to), 0)))
	}, ns)
	if file == nil {
		return err
	}
	defer file.Close()
	if err != nil {
		return err
	}
	c, err := net.FileConn(file)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte{8, 0, 0, 0, 0, 0, 0, 1, 'h', 'i'}); err != nil {
		return err
	}
	answer := make([]byte, 100)
	n, err := c.Read(answer)
	if err != nil {
		return err
	}
	if n < 10 || answer[n-2] != 'h' {
		return fmt.Errorf("the answer is % x", answer[:n])
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// leadLoopbackOut routes 127.0.0.1 to a gateway in the calling thread's network.
func leadLoopbackOut(gateway netip.Addr) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	rule := netlink.NewRule()
	rule.Family, rule.Table, rule.Priority = netlink.FAMILY_V4, 77, 1
	rule.Dst = ipNet(netip.MustParsePrefix("127.0.0.1/32"))
	local := netlink.NewRule()
	local.Family, local.Table, local.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, 10
	own := netlink.NewRule()
	own.Family, own.Table, own.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, 0
	return errors.Join(
		netlink.RuleAdd(local), netlink.RuleDel(own), netlink.RuleAdd(rule),
		netlink.RouteAdd(&netlink.Route{Dst: rule.Dst, Table: 77, LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}))
}

// routeBy adds a route through a neighbour in the calling thread's network.
func routeBy(to, gateway string) error {
	return netlink.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParsePrefix(to).Masked()), Gw: net.ParseIP(gateway)})
}

// tableNames returns the names of the IPv4 tables in the host's network.
func tableNames() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	list, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names, err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestMain(m *testing.M) { testenv.Main(m) }

// testbed is the environment of a test's pods. This process's network stands for the host's,
// because this process is root of the user namespace that owns it.
type testbed struct {
	t testing.TB
	*nettest.Testbed
}

func newTestbed(t testing.TB) *testbed {
	t.Helper()
	w := &testbed{t, nettest.NewTestbed(t, nettest.HostNetNS)}
	t.Cleanup(func() {
		if n := tables(t); n != 0 {
			t.Errorf("%d tables are left", n)
		}
	})
	w.removeAtEnd(w.Router)
	if err := Check(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(ipForward, []byte("0"), 0); err != nil {
			t.Error(err)
		}
	})
	return w
}

// removeAtEnd removes a router's masquerade device when the test ends.
func (w *testbed) removeAtEnd(r router.Router) {
	w.t.Cleanup(func() {
		if err := Remove(r); err != nil {
			w.t.Error(err)
		}
	})
}

// testPod is a network namespace whose traffic leaves through the kernel.
type testPod struct {
	*testbed
	ns     string
	slot   ipam.Slot
	egress *egress.Proxy
}

// attach returns a pod's network.
func (w *testbed) attach(s ipam.Slot) *testPod {
	w.t.Helper()
	return &testPod{testbed: w, ns: w.NewPod(w.t, s), slot: s}
}

func (w *testbed) pod(s ipam.Slot, change ...func(*egress.Config)) *testPod {
	w.t.Helper()
	mtu, err := Ensure(w.Router)
	if err != nil {
		w.t.Fatal(err)
	}
	p := w.attach(s)
	traffic, err := w.Router.OpenMasqueraded(p.ns, w.Pool, s, mtu)
	if err != nil {
		w.t.Fatal(err)
	}
	p.serve(traffic, change...)
	return p
}

// serve serves the pod as a supervisor does.
func (p *testPod) serve(traffic router.TrafficFDs, change ...func(*egress.Config)) {
	p.t.Helper()
	c := egress.Config{RouterNS: p.RouterNS, Pool: p.Pool, Slot: p.slot}
	for _, f := range change {
		f(&c)
	}
	var err error
	if p.egress, err = egress.Start(c, traffic); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.egress.Close)
}

// idle reports whether none of the pod's traffic passes through the supervisor.
func (p *testPod) idle() bool {
	idle := p.egress.Pause()
	if idle {
		p.egress.Resume()
	}
	return idle
}

// echoServer starts a server in a network that echoes each connection and sends the clients'
// addresses to a channel.
func echoServer(t testing.TB, ns, address string) (to string, clients <-chan netip.Addr) {
	t.Helper()
	reported := make(chan netip.Addr, 100)
	l := nettest.Serve(t, ns, address, func(c *net.TCPConn) {
		reported <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		nettest.Echo(c)
	})
	return l.Addr().String(), reported
}

// text returns size bytes.
func text(size int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), size/16) }

// tables counts the masquerade devices' tables in the host's network.
func tables(t testing.TB) (n int) {
	t.Helper()
	names, err := tableNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if isOwnTable(name) {
			n++
		}
	}
	return n
}
