package ingress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/hostport"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The world of these tests: the test's own network is the host, at 10.77.0.1 and
// fd77::1; a remote host is at 10.77.0.2 and fd77::2; behind a router, in which the pod's
// answers to anybody come back to the sockets there, a pod at 10.88.0.2 and fd88::2.
type world struct {
	host, remote, router, pod string

	name string // what whoServer says at last
}

const (
	hostAddr, hostAddr6     = "10.77.0.1", "fd77::1"
	remoteAddr, remoteAddr6 = "10.77.0.2", "fd77::2"
	podAddr, podAddr6       = "10.88.0.2", "fd88::2"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{host: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net", remote: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net",
		router: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net", pod: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"}
	for _, ns := range []string{w.host, w.remote, w.router, w.pod} {
		if err := netns.LoopbackUp(ns); err != nil {
			t.Fatal(err)
		}
		must(t, in(ns, func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0)
		}))
	}
	link(t, w.host, w.remote, "10.77.0.1/24", "10.77.0.2/24", "fd77::1/64", "fd77::2/64")
	// As netns.Router has it.
	for _, ns := range []string{w.router, w.pod} {
		must(t, in(ns, func() error {
			return errors.Join(os.WriteFile("/proc/sys/net/ipv4/tcp_rmem", []byte("4096 131072 1048576"), 0),
				os.WriteFile("/proc/sys/net/ipv4/tcp_wmem", []byte("4096 65536 1048576"), 0))
		}))
	}
	link(t, w.router, w.pod, "10.88.0.1/24", "10.88.0.2/24", "fd88::1/64", "fd88::2/64")
	for _, ns := range []string{w.router, w.pod} {
		must(t, in(ns, func() error {
			l, err := netlink.LinkByName("eth0")
			if err == nil {
				err = netlink.LinkSetMTU(l, netns.MTU)
			}
			return err
		}))
	}
	must(t, in(w.pod, func() error {
		for _, gw := range []string{"10.88.0.1", "fd88::1"} {
			if err := netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gw)}); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, in(w.router, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		for family, all := range map[int]string{netlink.FAMILY_V4: "0.0.0.0/0", netlink.FAMILY_V6: "::/0"} {
			_, dst, _ := net.ParseCIDR(all)
			err := netlink.RouteAdd(&netlink.Route{Type: unix.RTN_LOCAL, Table: 100, Dst: dst, LinkIndex: lo.Attrs().Index, Scope: netlink.SCOPE_HOST})
			if err != nil {
				return err
			}
			rule := netlink.NewRule()
			rule.IifName, rule.Table, rule.Family = "eth0", 100, family
			if err := netlink.RuleAdd(rule); err != nil {
				return err
			}
		}
		return nil
	}))
	return w
}

func in(ns string, f func() error) error { return nsthread.Do(f, ns) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// link joins two namespaces by a veth, each end eth0 with its addresses.
func link(t testing.TB, a, b string, addrs ...string) {
	t.Helper()
	fd, err := unix.Open(b, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, in(a, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(fd)})
	}))
	for i, ns := range []string{a, b} {
		must(t, in(ns, func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
			for n := i; n < len(addrs); n += 2 {
				addr, err := netlink.ParseAddr(addrs[n])
				if err != nil {
					return err
				}
				addr.Flags = unix.IFA_F_NODAD
				if err := netlink.AddrAdd(l, addr); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, ns := range []string{a, b} {
		must(t, in(ns, carries))
	}
}

// carries waits until eth0 takes packets, which it does a while after its other end is up
// (linkwatch), and hears who asks for its address (its group, of RFC 4291, 2.7.1). What comes
// before is lost, and sent again after a second, if at all.
func carries() error {
	const groups = "ff0200000000000000000001ff0000"
	for deadline := time.Now().Add(time.Minute); ; {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		heard, err := os.ReadFile("/proc/thread-self/net/igmp6")
		if err != nil || l.Attrs().OperState == netlink.OperUp && strings.Contains(string(heard), groups) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("eth0 is %s and hears\n%s", l.Attrs().OperState, heard)
		}
	}
}

// dialer reaches the pod from the router, with clients' addresses; or, plain, from the
// pod's own network.
func (w *world) dialer(t testing.TB, plain bool) Dialer {
	t.Helper()
	d := &Inside{Addrs: []netip.Addr{netip.MustParseAddr(podAddr), netip.MustParseAddr(podAddr6)}, Transparent: !plain,
		Ours: []netip.Prefix{netip.MustParsePrefix("10.88.0.0/16"), netip.MustParsePrefix("fd88::/64")}}
	ns := w.router
	if plain {
		ns = w.pod
	}
	must(t, d.Enter(ns))
	t.Cleanup(d.Close)
	return d
}

// publish serves a port of the host, and another number of the pod's.
func (w *world) publish(t testing.TB, d Dialer, p hostport.Port, to int) *Server {
	t.Helper()
	var file *os.File
	must(t, in(w.host, func() (err error) {
		if file, err = hostport.Bind(p); err == nil {
			err = hostport.Listen(file, p)
		}
		return err
	}))
	s := New(d)
	err := s.Add(file, p.Protocol, to)
	file.Close()
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// dialFrom connects from a namespace.
func dialFrom(t testing.TB, ns, network, to string) net.Conn {
	t.Helper()
	c, err := tryFrom(ns, network, to)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func tryFrom(ns, network, to string) (c net.Conn, err error) {
	err = in(ns, func() error {
		var d net.Dialer
		c, err = d.Dial(network, to)
		return err
	})
	return c, err
}

// whoServer is a server in the pod that says from where it was asked.
func (w *world) whoServer(t testing.TB, addr string) {
	t.Helper()
	var l net.Listener
	var u net.PacketConn
	must(t, in(w.pod, func() (err error) {
		if l, err = net.Listen("tcp", addr); err == nil {
			u, err = net.ListenPacket("udp", addr)
		}
		return err
	}))
	done := make(chan struct{}, 2)
	t.Cleanup(func() {
		l.Close()
		u.Close()
		<-done
		<-done
	})
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.RemoteAddr(), w.name)
			c.Close()
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		b := make([]byte, 1<<16)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			u.WriteTo(fmt.Appendf(nil, "%v %d%s", from, n, w.name), from)
		}
	}()
}
