package uplink

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
	"github.com/podrun/podrun/netns/egress"
)

// dialTime is for how long a connection that is to succeed may be under way.
const dialTime = 20 * time.Second

func TestMain(m *testing.M) { testenv.Main(m) }

// Addresses of the two hosts.
const (
	hostAddr, remoteAddr = "10.77.0.1", "10.77.0.2"
)

// world is what a test's pods live in. This process's network is the host's, as this
// process is root of the user namespace that has it.
type world struct {
	t      testing.TB
	remote string // another host's network
	router netns.Router
	path   string // of the router
	pool   netns.Pool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	testenv.NoLeaks(t)
	w := &world{t: t, remote: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"}
	t.Cleanup(func() { // after all routers
		if n := tables(t); n != 0 {
			t.Errorf("%d tables are left", n)
		}
	})
	w.router, w.path, w.pool = newRouter(t)
	ns, err := os.Open(w.remote)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out", MTU: 1500}, PeerName: "in", PeerNamespace: netlink.NsFd(ns.Fd())}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	err = errors.Join(lay("out", hostAddr), netns.Do(w.remote, func() error { return lay("in", remoteAddr) }))
	if err != nil {
		t.Fatal(err)
	}
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

// newRouter is one that is prepared, without an uplink.
func newRouter(t testing.TB) (netns.Router, string, netns.Pool) {
	t.Helper()
	path := testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	router := netns.OpenRouter(path)
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(router); err != nil {
			t.Error(err)
		}
	})
	return router, path, pool
}

// lay gives the calling thread's network a loopback and a device with an address.
func lay(device, own string) error {
	for _, name := range []string{"lo", device} {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return err
		}
		if name == "lo" {
			continue
		}
		addr, err := netlink.ParseAddr(own + "/24")
		if err == nil {
			err = netlink.AddrAdd(link, addr)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	p := &testPod{world: w, ns: testenv.Namespaces(w.t, unix.CLONE_NEWNET) + "/ns/net", slot: s}
	err := netns.LoopbackUp(p.ns)
	if err == nil {
		err = w.router.Attach(p.ns, w.pool, s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) pod(s netns.Slot, change ...func(*egress.Config)) *testPod {
	w.t.Helper()
	mtu, err := Make(w.router)
	if err != nil {
		w.t.Fatal(err)
	}
	p := w.attach(s)
	wires, err := w.router.WireOut(p.ns, w.pool, s, mtu)
	if err != nil {
		w.t.Fatal(err)
	}
	p.serve(wires, change...)
	return p
}

// serve has the pod served by what is a supervisor's.
func (p *testPod) serve(wires netns.Wires, change ...func(*egress.Config)) {
	p.t.Helper()
	c := egress.Config{RouterNS: p.path, Pool: p.pool, Slot: p.slot}
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

// dial connects from inside a namespace, from an address if there is one, or says why not.
func dial(ns, from, to string, kind int, within time.Duration) (c net.Conn, err error) {
	at := netip.MustParseAddrPort(to)
	err = netns.Do(ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), "socket")
		defer file.Close()
		patience := unix.NsecToTimeval(within.Nanoseconds())
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience)
		if err == nil && from != "" {
			err = unix.Bind(fd, netns.SockAddr(netip.AddrPortFrom(netip.MustParseAddr(from), 0)))
		}
		if err == nil {
			err = unix.Connect(fd, netns.SockAddr(at))
		}
		if err == nil {
			c, err = net.FileConn(file)
		}
		return err
	})
	if err == nil {
		c.SetDeadline(time.Now().Add(max(within, time.Second)))
	}
	return c, err
}

func (p *testPod) dial(to string) (net.Conn, error) {
	return dial(p.ns, "", to, unix.SOCK_STREAM, dialTime)
}

// answering listens inside a namespace, answers each connection with what comes, and tells
// who the clients are.
func answering(t testing.TB, ns, at string) (to string, clients <-chan netip.Addr) {
	t.Helper()
	var l net.Listener
	err := netns.Do(ns, func() (err error) { l, err = net.Listen("tcp4", at); return err })
	if err != nil {
		t.Fatal(err)
	}
	told, done := make(chan netip.Addr, 100), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			told <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
			go func() {
				defer c.Close()
				io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), told
}

// exchange says something and wants it back.
func exchange(c net.Conn, size int) error {
	text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
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
