// Package nettest provides a network for tests: two hosts, a router with pods, and connections
// between them. It is removed after the test, which fails if the network cannot be made. Only tests
// import it.
package nettest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// HostNetNS is the network of this process.
const HostNetNS = "/proc/self/ns/net"

// Addresses of the two hosts, and the devices that connect them.
const (
	HostAddr, HostAddr6     = "10.77.0.1", "fd77::1"
	RemoteAddr, RemoteAddr6 = "10.77.0.2", "fd77::2"
	HostLink, RemoteLink    = "out", "in"
)

// Testbed is a network around pods. Networks are paths, as for netns.Do.
type Testbed struct {
	Host   string
	Remote string // network of another host, which reaches only the host
	*RouterBed
}

// NewTestbed connects a network, the host's, to a new one. If host is empty, the host's is new as
// well. It fails a test that leaves something behind: call it first.
func NewTestbed(t testing.TB, host string) *Testbed {
	t.Helper()
	testenv.NoLeaks(t)
	if host == "" {
		host = newNamespace(t)
	}
	if err := netns.LoopbackUp(host); err != nil {
		t.Fatal(err)
	}
	w := &Testbed{Host: host, Remote: newNetwork(t)}
	w.connect(t)
	w.RouterBed = NewRouterBed(t)
	return w
}

// newNetwork returns a network with only loopback.
func newNetwork(t testing.TB) string {
	t.Helper()
	ns := newNamespace(t)
	if err := netns.LoopbackUp(ns); err != nil {
		t.Fatal(err)
	}
	return ns
}

func newNamespace(t testing.TB) string {
	t.Helper()
	return testenv.NewNamespaces(t, unix.CLONE_NEWNET) + "/ns/net"
}

// connect returns when both devices carry packets.
func (w *Testbed) connect(t testing.TB) {
	t.Helper()
	ns, err := os.Open(w.Remote)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: HostLink, MTU: 1500}, PeerName: RemoteLink, PeerNamespace: netlink.NsFd(ns.Fd())}
	Do(t, w.Host, func() error { return netlink.LinkAdd(veth) })
	t.Cleanup(func() { nsthread.Do(func() error { return netlink.LinkDel(veth) }, w.Host) })
	Do(t, w.Host, func() error { return setUp(HostLink, HostAddr+"/24", HostAddr6+"/64") })
	Do(t, w.Remote, func() error { return setUp(RemoteLink, RemoteAddr+"/24", RemoteAddr6+"/64") })
	Do(t, w.Host, func() error { return waitForCarrier(HostLink) })
	Do(t, w.Remote, func() error { return waitForCarrier(RemoteLink) })
}

func setUp(device string, addrs ...string) error {
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/accept_dad", []byte("0"), 0); err != nil {
		return err
	}
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	return errors.Join(AddAddresses(device, addrs...), netlink.LinkSetUp(link))
}

// AddAddresses gives a device of the calling thread's network more addresses, each with the prefix
// length of its network. They are usable at once.
func AddAddresses(device string, addrs ...string) error {
	link, err := netlink.LinkByName(device)
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
			return fmt.Errorf("add %s to %s: %w", a, device, err)
		}
	}
	return nil
}

// waitForCarrier waits until a device accepts packets, which takes a while after its other end is
// up (linkwatch), and until it has joined the multicast group of its address (RFC 4291, 2.7.1). An
// earlier packet is lost, and sent again after a second, if at all.
func waitForCarrier(device string) error {
	const groups = "ff0200000000000000000001ff0000"
	for deadline := time.Now().Add(Timeout); ; {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		received, err := os.ReadFile("/proc/thread-self/net/igmp6")
		if err != nil || link.Attrs().OperState == netlink.OperUp && strings.Contains(string(received), groups) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is %s and receives\n%s", device, link.Attrs().OperState, received)
		}
	}
}

// RouterBed is a prepared router to which pods can be attached.
type RouterBed struct {
	Router   router.Router
	RouterNS string // its network
	Pool     ipam.Pool
}

// NewRouter makes a router that is not prepared.
func NewRouter(t testing.TB) router.Router {
	t.Helper()
	return router.Open(newNamespace(t))
}

// NewRouterBed makes a router.
func NewRouterBed(t testing.TB) *RouterBed {
	t.Helper()
	p := &RouterBed{RouterNS: newNamespace(t)}
	p.Router = router.Open(p.RouterNS)
	var err error
	if p.Pool, err = p.Router.Prepare(); err != nil {
		t.Fatal(err)
	}
	return p
}

// NewPod returns the path of a network that is attached to the router.
func (p *RouterBed) NewPod(t testing.TB, s ipam.Slot) string {
	t.Helper()
	ns := newNetwork(t)
	if err := p.Router.Attach(ns, p.Pool, s); err != nil {
		t.Fatal(err)
	}
	return ns
}

// NewPodWithTraffic is NewPod with its traffic descriptors, which only the caller reads.
func (p *RouterBed) NewPodWithTraffic(t testing.TB, s ipam.Slot) (string, router.TrafficFDs) {
	t.Helper()
	ns := p.NewPod(t, s)
	traffic, err := p.Router.OpenTraffic(p.Pool, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := traffic.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns, traffic
}
