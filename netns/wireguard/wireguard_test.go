package wireguard

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/netpolicy"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// The test binary is also the program of the process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == protocol.EntryWireguard {
		lonelyTime = 100 * time.Millisecond
		os.Exit(serve(nil))
	}
	testenv.Main(m)
}

const mtu = 1420

// host is a node of a cluster.
type host struct {
	*nettest.RouterBed
	ns     string // the host's network
	config control.Config
	public control.Key
	socket string
	cmd    *exec.Cmd
	ended  chan error
}

// newHost makes the router of a node with the given networks of pods. It has a pod with traffic descriptors,
// whose namespace is pod.
func newHost(t *testing.T, ns string, bed *nettest.RouterBed, port uint16, networks ...string) (h *host, pod string) {
	t.Helper()
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h = &host{RouterBed: bed, ns: ns, public: control.Key(private.PublicKey().Bytes()), socket: filepath.Join(t.TempDir(), "socket")}
	h.config = control.Config{PrivateKey: control.Key(private.Bytes()), Port: port, MTU: mtu}
	for _, n := range networks {
		h.config.Own = append(h.config.Own, netip.MustParsePrefix(n))
	}
	bed.Pool.NodeV4, bed.Pool.NodeV6, bed.Pool.NodeMTU = h.config.Own[0], h.config.Own[1], mtu
	pod, _ = bed.NewPodWithTraffic(t, 7)
	return h, pod
}

// start starts the process of the node.
func (h *host) start(t *testing.T) {
	t.Helper()
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	socket, err := control.Listen(h.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	ns, err := os.Open(h.RouterNS)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	h.cmd = control.Command("/proc/self/exe", lock, socket, ns)
	h.cmd.Stderr = os.Stderr
	nettest.Do(t, h.ns, h.cmd.Start)
	h.ended = make(chan error, 1)
	go func() { h.ended <- h.cmd.Wait() }()
	t.Cleanup(h.kill)
}

func (h *host) kill() {
	if h.cmd != nil {
		h.cmd.Process.Kill()
		<-h.ended
		h.cmd = nil
	}
}

// peer returns the host as a peer of others, at an address.
func (h *host) peer(address string) control.Peer {
	return control.Peer{PublicKey: h.public, Endpoint: netip.AddrPortFrom(netip.MustParseAddr(address), h.config.Port), Networks: h.config.Own}
}

// connect makes these peers the only ones.
func (h *host) connect(t *testing.T, peers ...control.Peer) {
	t.Helper()
	h.config.Peers = peers
	if err := control.Send(h.socket, &h.config); err != nil {
		t.Fatal(err)
	}
}

// pair is two nodes whose pods reach each other, by both families.
type pair struct {
	a, b       *host
	podA, podB string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	w := nettest.NewTestbed(t, "")
	p := &pair{}
	p.a, p.podA = newHost(t, w.Host, w.RouterBed, 51820, "10.244.1.0/24", "2001:db8:1::/64")
	p.b, p.podB = newHost(t, w.Remote, nettest.NewRouterBed(t), 51821, "10.244.2.0/24", "2001:db8:2::/64")
	for _, h := range []*host{p.a, p.b} {
		h.start(t)
	}
	p.a.connect(t, p.b.peer(nettest.RemoteAddr))
	p.b.connect(t, p.a.peer(nettest.HostAddr))
	return p
}

// addresses returns the addresses of the pod of a host, as clients write them.
func (h *host) addresses(port int) (list []string) {
	for _, a := range router.UsableAddresses(h.Pool, 7) {
		list = append(list, netip.AddrPortFrom(a, uint16(port)).String())
	}
	return list
}

// reaches reports whether an echo server answers before a time.
func reaches(ns, to string, within time.Duration) error {
	c, err := nettest.DialFrom(ns, "tcp", "", to, within)
	if err != nil {
		return err
	}
	defer c.Close()
	return nettest.RoundTrip(c, []byte("hello"))
}

// Pods of two nodes exchange datagrams that are larger than the tunnel's packets, and streams, and see each
// other's addresses.
func TestPodsOfTwoNodes(t *testing.T) {
	p := newPair(t)
	stream := make([]byte, 10<<20)
	rand.Read(stream)
	clients := p.a.addresses(0)
	for i, address := range p.b.addresses(5300) {
		want := netip.MustParseAddrPort(clients[i]).Addr()
		seen := func(from net.Addr) {
			if got := netip.MustParseAddrPort(from.String()).Addr(); got != want {
				t.Errorf("the server at %s sees the client %s, want %s", address, got, want)
			}
		}
		nettest.ServePacket(t, p.podB, address, func(from net.Addr, text []byte) []byte { seen(from); return text })
		nettest.Serve(t, p.podB, address, func(c *net.TCPConn) { seen(c.RemoteAddr()); nettest.Echo(c) })
		c := nettest.Connect(t, p.podA, "udp", address)
		for _, size := range []int{1, mtu - 48, mtu, 4096, 4096, 20000} {
			text, got := bytes.Repeat([]byte{byte(size)}, size), make([]byte, 1<<16)
			if _, err := c.Write(text); err != nil {
				t.Fatalf("send %d bytes to %s: %v", size, address, err)
			}
			if n, err := c.Read(got); err != nil || !bytes.Equal(got[:n], text) {
				t.Fatalf("of %d bytes to %s %d came back: %v", size, address, n, err)
			}
		}
		if err := nettest.RoundTrip(nettest.Connect(t, p.podA, "tcp", address), stream); err != nil {
			t.Errorf("a stream to %s: %v", address, err)
		}
	}
}

// Packets of a pod are not larger than a TUN device takes: the kernel would cut them into pieces of the MTU before
// the tunnel.
func TestPacketsFitTheTunnel(t *testing.T) {
	p := newPair(t)
	nettest.Do(t, p.podA, func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil && link.Attrs().GSOIPv4MaxSize > 1<<16 {
			t.Errorf("packets have up to %d bytes", link.Attrs().GSOIPv4MaxSize)
		}
		return err
	})
}

// Pods reach pods of other nodes whichever way their other packets take.
func TestEveryEgressMode(t *testing.T) {
	p := newPair(t)
	ways := map[ipam.Slot]func(ns string, s ipam.Slot) (router.TrafficFDs, error){
		8: func(ns string, s ipam.Slot) (router.TrafficFDs, error) {
			return p.a.Router.OpenMasqueraded(ns, p.a.Pool, s, 1500)
		},
		9: func(_ string, s ipam.Slot) (router.TrafficFDs, error) { return p.a.Router.OpenPackets(p.a.Pool, s) },
	}
	for s, open := range ways {
		ns := p.a.NewPod(t, s)
		traffic, err := open(ns, s)
		if err != nil {
			t.Fatal(err)
		}
		defer traffic.Close()
		for i, address := range p.b.addresses(5300 + int(s)) {
			client := router.UsableAddresses(p.a.Pool, s)[i]
			nettest.ServePacket(t, p.podB, address, func(from net.Addr, text []byte) []byte {
				if got := netip.MustParseAddrPort(from.String()).Addr(); got != client {
					t.Errorf("slot %d: the server sees the client %s, want %s", s, got, client)
				}
				return text
			})
			c, got := nettest.Connect(t, ns, "udp", address), make([]byte, 5000)
			if _, err := c.Write(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(got); err != nil || n != 4096 {
				t.Errorf("slot %d: of 4096 bytes to %s %d came back: %v", s, address, n, err)
			}
		}
	}
}

// A Service's endpoints may be pods of another node, and a NetworkPolicy of that node applies to the client, which
// keeps its address.
func TestServicesAndPolicies(t *testing.T) {
	p := newPair(t)
	address := netip.MustParseAddrPort(p.b.addresses(5300)[0])
	nettest.Serve(t, p.podB, address.String(), nettest.Echo)
	vip := p.a.Pool.ServiceAddresses(5).V4
	catalog := services.Catalog{Services: []services.Service{{
		Namespace: "default", Name: "echo", Addresses: []netip.Addr{vip}, Ports: []services.Port{{Protocol: "TCP", Port: 80}},
		Fixed: []services.Pod{{Addresses: []netip.Addr{address.Addr()}, Ready: true, Fixed: true, Ports: []services.NamedPort{{Protocol: "TCP", Port: address.Port()}}}},
	}}}
	if _, err := services.Apply(p.a.RouterNS, p.a.Pool.ServiceRanges(), catalog); err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(vip, 80).String()
	if err := reaches(p.podA, to, nettest.Timeout); err != nil {
		t.Fatalf("by the Service: %v", err)
	}
	addresses, gateway := p.b.Pool.Addresses(7), p.b.Pool.Gateway()
	isolate := func(allowed netip.Prefix) {
		t.Helper()
		is := netpolicy.Isolation{Device: router.DeviceIndex(7), Own: []netip.Addr{addresses.V4, addresses.V6}, Node: []netip.Addr{gateway.V4, gateway.V6},
			Ingress: netpolicy.Filter{Isolated: true, Allowed: []netpolicy.Allow{{Blocks: []netpolicy.Block{{CIDR: allowed}}}}}}
		listening := func() ([]uint16, error) { return []uint16{address.Port()}, nil }
		if _, err := netpolicy.Apply(p.b.RouterNS, []netpolicy.Isolation{is}, is.Device, listening); err != nil {
			t.Fatal(err)
		}
	}
	isolate(p.b.config.Own[0])
	if err := reaches(p.podA, to, time.Second); err == nil {
		t.Error("a policy allows only pods of its node, and one of another node is let in")
	}
	isolate(p.a.config.Own[0])
	if err := reaches(p.podA, to, nettest.Timeout); err != nil {
		t.Errorf("a policy allows pods of the other node: %v", err)
	}
}

// A peer that is removed is not reached from then on, and reaches nothing; one with another endpoint is
// reached there.
func TestPeersChange(t *testing.T) {
	p := newPair(t)
	address := p.b.addresses(5300)[0]
	nettest.Serve(t, p.podB, address, nettest.Echo)
	back := p.a.addresses(5300)[0]
	nettest.Serve(t, p.podA, back, nettest.Echo)
	if err := reaches(p.podA, address, nettest.Timeout); err != nil {
		t.Fatal(err)
	}
	open := nettest.Connect(t, p.podB, "tcp", back)
	if err := nettest.RoundTrip(open, []byte("x")); err != nil {
		t.Fatal(err)
	}

	p.a.connect(t)
	open.SetDeadline(time.Now().Add(time.Second))
	if err := nettest.RoundTrip(open, []byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection of a removed peer: %v", err)
	}
	if err := reaches(p.podB, back, time.Second); err == nil {
		t.Error("a removed peer reaches a pod")
	}

	// Another host has the pods of B now: B's process has moved to another port.
	p.b.config.Port = 51999
	p.b.connect(t, p.a.peer(nettest.HostAddr))
	p.a.connect(t, p.b.peer(nettest.RemoteAddr))
	if err := reaches(p.podA, address, nettest.Timeout); err != nil {
		t.Errorf("at another port: %v", err)
	}
	nettest.Do(t, p.b.ns, func() error { return nettest.AddAddresses(nettest.RemoteLink, "10.77.0.3/24") })
	p.a.connect(t, p.b.peer("10.77.0.3"))
	if err := reaches(p.podA, address, nettest.Timeout); err != nil {
		t.Errorf("at another address: %v", err)
	}
}

// While no process carries the packets, pods of other nodes are unreachable, and no packet to them leaves the
// router by another way. The next process continues; a connection survives.
func TestProcessIsKilled(t *testing.T) {
	p := newPair(t)
	address := p.b.addresses(5300)
	for _, a := range address {
		nettest.Serve(t, p.podB, a, nettest.Echo)
	}
	c := nettest.Connect(t, p.podA, "tcp", address[0])
	if err := nettest.RoundTrip(c, []byte("before")); err != nil {
		t.Fatal(err)
	}
	p.a.kill()
	for _, a := range address {
		if err := reaches(p.podA, a, nettest.Timeout); !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("connect to %s without a process: %v", a, err)
		}
	}
	p.a.start(t)
	p.a.connect(t, p.b.peer(nettest.RemoteAddr))
	if err := nettest.RoundTrip(c, []byte("after")); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
}

// A node reaches the pods of another, and nothing else: neither its router, nor Services, nor hosts behind it.
// A source that is not of the node's networks is dropped.
func TestTunnelLeadsToPodsOnly(t *testing.T) {
	p := newPair(t)
	a, b := p.a.peer(nettest.HostAddr), p.b.peer(nettest.RemoteAddr)
	a.Networks = append([]netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}, a.Networks...)
	p.b.connect(t, a)
	nettest.Do(t, p.a.RouterNS, func() error { return nettest.AddAddresses("lo", "10.99.0.1/32") })
	nettest.Serve(t, p.a.RouterNS, "10.99.0.1:5300", nettest.Echo)
	if err := reaches(p.podB, "10.99.0.1:5300", time.Second); err == nil {
		t.Error("another node reaches the router")
	}
	back := p.a.addresses(5300)[0]
	nettest.Serve(t, p.podA, back, nettest.Echo)
	if err := reaches(p.podB, back, nettest.Timeout); err != nil {
		t.Errorf("another node does not reach a pod: %v", err)
	}
	b.Networks = b.Networks[1:] // no IPv4
	p.a.connect(t, b)
	if err := reaches(p.podB, back, time.Second); err == nil {
		t.Error("a pod is reached from an address that its node does not have")
	}
}

// The process ends with the last pod of its router.
func TestEndsWithThePods(t *testing.T) {
	p := newPair(t)
	select {
	case err := <-p.a.ended:
		t.Fatalf("it ended with a pod: %v", err)
	default:
	}
	if err := p.a.Router.Detach(7); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.a.ended:
		if err != nil {
			t.Error(err)
		}
		p.a.ended <- nil
	case <-time.After(nettest.Timeout):
		t.Error("it does not end")
	}
}

// A configuration that the device does not accept is reported; the next one is complete.
func TestBadConfiguration(t *testing.T) {
	p := newPair(t)
	address := p.b.addresses(5300)[0]
	nettest.Serve(t, p.podB, address, nettest.Echo)
	good := p.a.config
	taken := nettest.ListenPacket(t, p.a.ns, ":51900")
	defer taken.Close()
	bad := good
	bad.Port = 51900
	if err := control.Send(p.a.socket, &bad); err == nil {
		t.Error("a port that another process has")
	}
	p.a.config = good
	p.a.connect(t, p.b.peer(nettest.RemoteAddr))
	if err := reaches(p.podA, address, nettest.Timeout); err != nil {
		t.Error(err)
	}
	// A client that sends nothing, or nonsense, does not end the process.
	for _, text := range []string{"", "{", "nonsense\n"} {
		c, err := net.Dial("unix", p.a.socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		c.(*net.UnixConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	p.a.connect(t, p.b.peer(nettest.RemoteAddr))
}
