package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is what a test's pods live in. This process's network is the host's.
type world struct {
	t      testing.TB
	remote string // another host's network
	router netns.Router
	path   string // of the router
	pool   netns.Pool
}

// Addresses of the two hosts.
const (
	hostAddr, remoteAddr   = "10.77.0.1", "10.77.0.2"
	hostAddr6, remoteAddr6 = "fd77::1", "fd77::2"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	testenv.NoLeaks(t)
	w := &world{t: t, remote: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"}
	w.path = testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	w.router = netns.OpenRouter(w.path)
	w.wire()
	var err error
	if w.pool, err = w.router.Prepare(); err != nil {
		t.Fatal(err)
	}
	return w
}

// wire joins the two hosts.
func (w *world) wire() {
	w.t.Helper()
	ns, err := os.Open(w.remote)
	if err != nil {
		w.t.Fatal(err)
	}
	defer ns.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out"}, PeerName: "in", PeerNamespace: netlink.NsFd(ns.Fd())}
	if err := netlink.LinkAdd(veth); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { netlink.LinkDel(veth) })
	up := func(name string, addrs ...string) error {
		if err := netns.LoopbackUp("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			addr, err := netlink.ParseAddr(a)
			if err != nil {
				return err
			}
			addr.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(link, addr); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(link)
	}
	err = errors.Join(up("out", hostAddr+"/24", hostAddr6+"/64"),
		netns.Do(w.remote, func() error { return up("in", remoteAddr+"/24", remoteAddr6+"/64") }))
	if err != nil {
		w.t.Fatal(err)
	}
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
	p := &testPod{world: w, ns: testenv.Namespaces(w.t, unix.CLONE_NEWNET) + "/ns/net", slot: s, own: w.pool.Of(s)}
	err := netns.LoopbackUp(p.ns)
	if err == nil {
		err = w.router.Attach(p.ns, w.pool, s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// pod is one whose traffic is carried.
func (w *world) pod(s netns.Slot, change ...func(*Config)) *testPod {
	w.t.Helper()
	p := w.attach(s)
	wires, err := w.router.Wire(w.pool, s)
	if err != nil {
		w.t.Fatal(err)
	}
	c := Config{RouterNS: w.path, Pool: w.pool, Slot: s}
	for _, f := range change {
		f(&c)
	}
	if p.egress, err = Serve(c, wires); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.egress.Close() })
	return p
}

// dial connects from inside a namespace, or says why not.
func dial(ns, network, to string) (c net.Conn, err error) {
	err = netns.Do(ns, func() error {
		c, err = dialHere(network, netip.MustParseAddrPort(to))
		return err
	})
	return c, err
}

// dialHere connects on the calling thread: net.Dial may use others.
func dialHere(network string, to netip.AddrPort) (net.Conn, error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 60}); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, netns.SockAddr(to)); err != nil {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err == nil {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
	return c, err
}

// listen listens inside a namespace.
func listen(t testing.TB, ns, at string) net.Listener {
	t.Helper()
	var l net.Listener
	err := netns.Do(ns, func() (err error) { l, err = net.Listen("tcp", at); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve answers every connection with f until the test has ended.
func serve(t testing.TB, l net.Listener, f func(*net.TCPConn)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c.(*net.TCPConn))
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// echoAll gives back what comes, by hand: Go's own splicing would keep a pipe for the next.
func echoAll(c *net.TCPConn) { io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }

// exchange says something and wants it back.
func exchange(c net.Conn, text []byte) error {
	go func() { c.Write(text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("of %d bytes: %w", len(text), err)
	}
	if !bytes.Equal(got, text) {
		return errors.New("something else came back")
	}
	return nil
}

// idle waits until nothing of the pod is under way.
func (p *testPod) idle() {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if p.egress.Pause() {
			p.egress.Resume()
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%d flows stay", p.egress.flows.Load())
			return
		}
	}
}

// dialWithin is dial with a bound.
func dialWithin(ns string, to netip.AddrPort, within time.Duration) (c net.Conn, err error) {
	var fd int
	err = netns.Do(ns, func() error {
		family := unix.AF_INET
		if to.Addr().Is6() {
			family = unix.AF_INET6
		}
		if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		timeout := unix.NsecToTimeval(within.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
			return err
		}
		return unix.Connect(fd, netns.SockAddr(to))
	})
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err != nil {
		return nil, err
	}
	if c, err = net.FileConn(f); err == nil {
		c.SetDeadline(time.Now().Add(max(within, time.Second)))
	}
	return c, err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func netipPort(a netip.Addr, port int) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }
