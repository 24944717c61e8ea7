// Package nettest is the network of tests: two hosts, a router with pods, and what is said
// between them. All of it goes with the test, which fails where it cannot be made. Only
// tests import it.
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
)

// Here is this process's own network.
const Here = "/proc/self/ns/net"

// Addresses of the two hosts, and the devices that join them.
const (
	HostAddr, HostAddr6     = "10.77.0.1", "fd77::1"
	RemoteAddr, RemoteAddr6 = "10.77.0.2", "fd77::2"
	HostLink, RemoteLink    = "out", "in"
)

// World is what pods live in. Networks are paths, as netns.Do takes them.
type World struct {
	Host   string
	Remote string // another host's, which the host reaches, and nothing else
	*Pods
}

// NewWorld joins a network, the host's, to a new one; where it is empty the host's is new as
// well. It fails a test that leaves something behind: call it first.
func NewWorld(t testing.TB, host string) *World {
	t.Helper()
	testenv.NoLeaks(t)
	if host == "" {
		host = newNamespace(t)
	}
	if err := netns.LoopbackUp(host); err != nil {
		t.Fatal(err)
	}
	w := &World{Host: host, Remote: newNetwork(t)}
	w.join(t)
	w.Pods = NewPods(t)
	return w
}

// newNetwork has nothing but loopback.
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
	return testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
}

// join returns when both devices carry packets.
func (w *World) join(t testing.TB) {
	t.Helper()
	ns, err := os.Open(w.Remote)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: HostLink, MTU: 1500}, PeerName: RemoteLink, PeerNamespace: netlink.NsFd(ns.Fd())}
	Do(t, w.Host, func() error { return netlink.LinkAdd(veth) })
	t.Cleanup(func() { nsthread.Do(func() error { return netlink.LinkDel(veth) }, w.Host) })
	Do(t, w.Host, func() error { return bringUp(HostLink, HostAddr+"/24", HostAddr6+"/64") })
	Do(t, w.Remote, func() error { return bringUp(RemoteLink, RemoteAddr+"/24", RemoteAddr6+"/64") })
	Do(t, w.Host, func() error { return carries(HostLink) })
	Do(t, w.Remote, func() error { return carries(RemoteLink) })
}

func bringUp(device string, addrs ...string) error {
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/accept_dad", []byte("0"), 0); err != nil {
		return err
	}
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	return errors.Join(AddAddresses(device, addrs...), netlink.LinkSetUp(link))
}

// AddAddresses gives a device of the calling thread's network more addresses, each with the
// length of its network's prefix. They can be used at once.
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

// carries waits until a device takes packets, which it does a while after its other end is up
// (linkwatch), and hears who asks for its address (its group, of RFC 4291, 2.7.1). What comes
// before is lost, and sent again after a second, if at all.
func carries(device string) error {
	const groups = "ff0200000000000000000001ff0000"
	for deadline := time.Now().Add(Patience); ; {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		heard, err := os.ReadFile("/proc/thread-self/net/igmp6")
		if err != nil || link.Attrs().OperState == netlink.OperUp && strings.Contains(string(heard), groups) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is %s and hears\n%s", device, link.Attrs().OperState, heard)
		}
	}
}

// Pods is a router that is prepared, where pods can be attached.
type Pods struct {
	Router   netns.Router
	RouterNS string // its network
	Pool     netns.Pool
}

// NewPods makes a router.
func NewPods(t testing.TB) *Pods {
	t.Helper()
	p := &Pods{RouterNS: newNamespace(t)}
	p.Router = netns.OpenRouter(p.RouterNS)
	var err error
	if p.Pool, err = p.Router.Prepare(); err != nil {
		t.Fatal(err)
	}
	return p
}

// NewPod is the path of a network that is attached to the router.
func (p *Pods) NewPod(t testing.TB, s netns.Slot) string {
	t.Helper()
	ns := newNetwork(t)
	if err := p.Router.Attach(ns, p.Pool, s); err != nil {
		t.Fatal(err)
	}
	return ns
}

// NewWiredPod is NewPod with its wires, which nobody but the caller reads.
func (p *Pods) NewWiredPod(t testing.TB, s netns.Slot) (string, netns.Wires) {
	t.Helper()
	ns := p.NewPod(t, s)
	wires, err := p.Router.Wire(p.Pool, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wires.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns, wires
}
