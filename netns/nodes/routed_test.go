package nodes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/services"
)

// node is a node of a cluster with one pod.
type node struct {
	*nettest.RouterBed
	number int
	ns     string // the node's network
	pod    string // the pod's network
	peers  []netip.Prefix
	routes []router.NodeRoute
}

const slot = 7 // of each node's pod

func podNetwork(number int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(number), 0}), 24)
}

// newNode returns the network of a node that is not the first one.
func newNode(t *testing.T, outside string, number int) string {
	t.Helper()
	var ns *os.File
	nettest.Do(t, outside, func() (err error) {
		if err = enterNetwork(number); err == nil {
			ns, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	t.Cleanup(func() { ns.Close() })
	return fmt.Sprintf("/proc/self/fd/%d", ns.Fd())
}

// newNodes returns two nodes, and the network of the pod in which they are.
func newNodes(t *testing.T) (w *nettest.Testbed, a, b *node) {
	t.Helper()
	w = nettest.NewTestbed(t, "")
	nettest.Do(t, w.Host, func() error {
		return errors.Join(netlink.RouteReplace(&netlink.Route{Gw: netip.MustParseAddr(nettest.RemoteAddr).AsSlice()}), prepare())
	})
	a = &node{RouterBed: w.RouterBed, number: 1, ns: w.Host}
	b = &node{RouterBed: nettest.NewRouterBed(t), number: 2, ns: newNode(t, w.Host, 2)}
	for n, other := range map[*node]*node{a: b, b: a} {
		n.peers = []netip.Prefix{netip.PrefixFrom(Address(1), 32), netip.PrefixFrom(Address(2), 32), podNetwork(other.number)}
		n.routes = []router.NodeRoute{{Network: podNetwork(other.number), Node: Address(other.number)}}
		n.Pool.NodeV4, n.Pool.NodeMTU = podNetwork(n.number), router.MTU
		n.connect(t, true)
		n.pod, _ = n.NewPodWithTraffic(t, slot)
	}
	return w, a, b
}

// connect does what the agent does again and again. It expects that the pair of devices is made, or is not.
func (n *node) connect(t *testing.T, makes bool) {
	t.Helper()
	networks := []netip.Prefix{podNetwork(n.number)}
	nettest.Do(t, n.ns, func() error {
		made, err := n.Router.ConnectNode(Address(n.number), networks)
		if made != makes {
			t.Errorf("node %d: the devices were made: %v", n.number, made)
		}
		if err == nil && made {
			err = n.Router.SetPeers(networks, n.peers)
		}
		return errors.Join(err, router.RouteNodes(Address(n.number), networks, n.routes))
	})
}

func (n *node) podAddress() netip.Addr { return n.Pool.Addresses(slot).V4 }

// serve answers connections and datagrams in a network with a name and the client's address.
func serve(t *testing.T, ns, name string, at netip.Addr, port uint16) {
	t.Helper()
	local := netip.AddrPortFrom(at, port).String()
	answer := func(from net.Addr) []byte {
		return []byte(name + " " + netip.MustParseAddrPort(from.String()).Addr().String())
	}
	nettest.Serve(t, ns, local, func(c *net.TCPConn) { c.Write(answer(c.RemoteAddr())) })
	nettest.ServePacket(t, ns, local, func(from net.Addr, _ []byte) []byte { return answer(from) })
}

// ask returns the answer of a server, by TCP and UDP.
func ask(ns string, at netip.Addr, port uint16) (string, error) {
	var answers []string
	for _, protocol := range []string{"tcp", "udp"} {
		c, err := nettest.Dial(ns, protocol, netip.AddrPortFrom(at, port).String())
		if err != nil {
			return "", err
		}
		defer c.Close()
		if protocol == "udp" {
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := c.Write([]byte("who?")); err != nil {
				return "", err
			}
		}
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil {
			return "", fmt.Errorf("read an answer by %s: %w", protocol, err)
		}
		answers = append(answers, string(b[:n]))
	}
	return strings.Join(slices.Compact(answers), ", "), nil
}

// expect asks, and compares the answer.
func expect(t *testing.T, what, ns string, at netip.Addr, port uint16, want string) {
	t.Helper()
	if got, err := ask(ns, at, port); err != nil || got != want {
		t.Errorf("%s: %q, want %q: %v", what, got, want, err)
	}
}

// Pods and nodes reach each other at their own addresses.
func TestPodsAreRouted(t *testing.T) {
	w, a, b := newNodes(t)
	for _, n := range []*node{a, b} {
		serve(t, n.pod, fmt.Sprintf("pod%d", n.number), n.podAddress(), 80)
		serve(t, n.ns, fmt.Sprintf("node%d", n.number), Address(n.number), 90)
	}
	podA, podB, nodeA, nodeB := a.podAddress().String(), b.podAddress().String(), Address(1).String(), Address(2).String()
	expect(t, "pod to a pod of another node", a.pod, b.podAddress(), 80, "pod2 "+podA)
	expect(t, "and back", b.pod, a.podAddress(), 80, "pod1 "+podB)
	expect(t, "node to its pod", a.ns, a.podAddress(), 80, "pod1 "+nodeA)
	expect(t, "node to a pod of another node", b.ns, a.podAddress(), 80, "pod1 "+nodeB)
	expect(t, "pod to its node", b.pod, Address(2), 90, "node2 "+podB)
	expect(t, "pod to another node", b.pod, Address(1), 90, "node1 "+podB)
	expect(t, "node to node", b.ns, Address(1), 90, "node1 "+nodeB)

	remote := netip.MustParseAddr(nettest.RemoteAddr)
	serve(t, w.Remote, "outside", remote, 90)
	expect(t, "node 2 to the outside", b.ns, remote, 90, "outside "+nettest.HostAddr)
	if got, err := ask(b.ns, netip.MustParseAddr("10.244.2.250"), 80); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("an address without a pod: %q, %v", got, err)
	}
}

// What the agent does again changes nothing. It repairs devices that somebody has removed, and the connections of before
// continue.
func TestRepair(t *testing.T) {
	_, a, b := newNodes(t)
	nettest.Serve(t, a.pod, netip.AddrPortFrom(a.podAddress(), 80).String(), nettest.Echo)
	c := nettest.Connect(t, b.pod, "tcp", netip.AddrPortFrom(a.podAddress(), 80).String())
	check := func(what string) {
		t.Helper()
		if err := nettest.RoundTrip(c, []byte("hello")); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	check("at first")
	a.connect(t, false)
	b.connect(t, false)
	check("connected again")
	nettest.Do(t, b.ns, func() error {
		link, err := netlink.LinkByName(router.NodeDevice)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	b.connect(t, true)
	check("without the removed devices")
	b.routes, b.peers = nil, b.peers[:2]
	b.connect(t, false)
	nettest.Do(t, b.ns, func() error {
		networks, err := router.HostNetworks()
		if slices.ContainsFunc(networks, podNetwork(1).Overlaps) || slices.ContainsFunc(networks, podNetwork(2).Overlaps) {
			t.Errorf("the routes of this package are the host's own: %v", networks)
		}
		routes, lerr := netlink.RouteList(nil, netlink.FAMILY_V4)
		for _, r := range routes {
			if r.Dst != nil && r.Dst.String() == podNetwork(1).String() {
				t.Errorf("the route to a former node is there: %s", r)
			}
		}
		return errors.Join(err, lerr, router.DisconnectNode())
	})
	if err := nsthread.Do(func() error { _, err := netlink.LinkByName(router.NodeDevice); return err }, b.ns); err == nil {
		t.Error("the device stays")
	}
}

// A host port shows the client's address, also if it is a node or one of its pods.
func TestHostPort(t *testing.T) {
	_, a, b := newNodes(t)
	serve(t, a.pod, "pod1", a.podAddress(), 80)
	dialer := &ingress.NetnsDialer{Addrs: []netip.Addr{a.podAddress()}, Transparent: true, PodPrefixes: a.Pool.Prefixes()}
	if err := dialer.Start(a.RouterNS); err != nil {
		t.Fatal(err)
	}
	defer dialer.Close()
	server := ingress.New(dialer)
	defer server.Close()
	for _, protocol := range []string{"tcp", "udp"} {
		port := hostport.Port{Protocol: protocol, Number: 8080}
		nettest.Do(t, a.ns, func() error {
			file, err := hostport.Bind(port)
			if err == nil {
				err = errors.Join(hostport.Listen(file, port), server.Add(file, protocol, 80))
			}
			return err
		})
	}
	expect(t, "a node", b.ns, Address(1), 8080, "pod1 "+Address(2).String())
	expect(t, "the node itself", a.ns, Address(1), 8080, "pod1 "+Address(1).String())
	expect(t, "a pod of another node", b.pod, Address(1), 8080, "pod1 "+b.podAddress().String())
}

// service returns a Service with endpoints.
func service(vip string, port, nodePort uint16, endpoints ...services.Pod) services.Service {
	s := services.Service{Namespace: "default", Name: vip, Addresses: []netip.Addr{netip.MustParseAddr(vip)}, Fixed: endpoints}
	for _, p := range []string{"TCP", "UDP"} {
		s.Ports = append(s.Ports, services.Port{Name: p, Protocol: p, Port: port, NodePort: nodePort})
	}
	return s
}

// endpoint returns an endpoint of a Service.
func endpoint(at netip.Addr, port uint16) services.Pod {
	return services.Pod{Name: at.String(), Addresses: []netip.Addr{at}, Ready: true, Fixed: true, Ports: []services.NamedPort{{Name: "TCP", Protocol: "TCP", Port: port}, {Name: "UDP", Protocol: "UDP", Port: port}}}
}

// apply applies a catalog to the networks of both nodes.
func apply(t *testing.T, d services.Catalog, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		addresses := []netip.Addr{Address(n.number)}
		if n.number == 1 {
			addresses = append(addresses, netip.MustParseAddr(nettest.HostAddr))
		}
		if err := services.ApplyToNode(n.ns, addresses, []netip.Addr{Address(3 - n.number)}, d); err != nil {
			t.Fatal(err)
		}
	}
}

// Nodes reach Services, whose endpoints are pods of any node or nodes, and node ports are open on every node.
func TestServicesOfNodes(t *testing.T) {
	w, a, b := newNodes(t)
	serve(t, a.pod, "pod1", a.podAddress(), 80)
	serve(t, a.ns, "node1", Address(1), 6443)
	remote := endpoint(a.podAddress(), 80)
	remote.Remote = true // for node 2
	local, elsewhere := service("10.96.0.30", 80, 30030, endpoint(a.podAddress(), 80)), service("10.96.0.31", 80, 30031, remote)
	local.LocalExternal, elsewhere.LocalExternal = true, true
	external := service("10.96.0.40", 8040, 0, endpoint(a.podAddress(), 80))
	external.External = []netip.Addr{Address(2)}
	d := services.Catalog{Services: []services.Service{service("10.96.0.10", 80, 30010, endpoint(a.podAddress(), 80)), service("10.96.0.1", 443, 0, endpoint(Address(1), 6443)),
		service("10.96.0.20", 80, 30020), local, elsewhere, external}}
	apply(t, d, a, b)
	vip, api := netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.96.0.1")
	expect(t, "node 1 to a Service", a.ns, vip, 80, "pod1 10.87.0.1")
	expect(t, "node 2 to a Service with a pod of node 1", b.ns, vip, 80, "pod1 10.87.0.2")
	expect(t, "node 1 to itself by a Service", a.ns, api, 443, "node1 10.87.0.1")
	expect(t, "node 2 to node 1 by a Service", b.ns, api, 443, "node1 10.87.0.2")
	expect(t, "a node port without a pod there", a.ns, Address(2), 30010, "pod1 10.87.0.2")
	expect(t, "a node port of the node itself", b.ns, Address(2), 30010, "pod1 10.87.0.2")
	expect(t, "a node port from a pod", b.pod, Address(2), 30010, "pod1 10.87.0.2")
	expect(t, "a node port that leads to its client", a.pod, Address(1), 30010, "pod1 10.87.0.1")
	expect(t, "a node port from outside", w.Remote, netip.MustParseAddr(nettest.HostAddr), 30010, "pod1 10.87.0.1")
	expect(t, "an external address", a.pod, Address(2), 8040, "pod1 10.87.0.1")
	for what, to := range map[string]netip.AddrPort{
		"a Service without endpoints": netip.MustParseAddrPort("10.96.0.20:80"), "its node port": netip.AddrPortFrom(Address(2), 30020),
		"a node port for local endpoints, which are elsewhere": netip.AddrPortFrom(Address(2), 30031), "another port of a Service": netip.AddrPortFrom(vip, 81),
	} {
		if got, err := ask(b.ns, to.Addr(), to.Port()); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	expect(t, "the Service of these", b.ns, netip.MustParseAddr("10.96.0.31"), 80, "pod1 10.87.0.2")
	expect(t, "a node port for local endpoints, from another node", b.ns, Address(1), 30030, "pod1 10.87.0.2")
	expect(t, "a node port for local endpoints, from outside", w.Remote, netip.MustParseAddr(nettest.HostAddr), 30030, "pod1 10.87.0.1")
	expect(t, "a node port for local endpoints that leads to its client", a.pod, Address(1), 30030, "pod1 10.87.0.1")

	c := nettest.Connect(t, b.ns, "tcp", netip.AddrPortFrom(vip, 80).String())
	apply(t, services.Catalog{}, a, b)
	if text, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(text), "pod1") {
		t.Errorf("a connection of before: %q, %v", text, err)
	}
	nettest.Do(t, b.ns, services.RemoveFromNode)
}

// Connections to a Service are spread over its endpoints; with affinity those of a client go to one.
func TestServicesOfNodesAreSpread(t *testing.T) {
	_, a, b := newNodes(t)
	serve(t, a.pod, "pod1", a.podAddress(), 80)
	serve(t, b.pod, "pod2", b.podAddress(), 80)
	spread := service("10.96.0.10", 80, 30010, endpoint(a.podAddress(), 80), endpoint(b.podAddress(), 80))
	stays := service("10.96.0.20", 80, 30020, endpoint(a.podAddress(), 80), endpoint(b.podAddress(), 80))
	stays.Affinity = time.Hour
	apply(t, services.Catalog{Services: []services.Service{spread, stays}}, a, b)
	for to, want := range map[string]int{"10.96.0.10:80": 2, "10.87.0.1:30010": 2, "10.96.0.20:80": 1, "10.87.0.1:30020": 1} {
		got := map[string]bool{}
		for range 8 {
			c := nettest.Connect(t, b.ns, "tcp", to)
			text, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			got[string(text)] = true
		}
		if len(got) != want {
			t.Errorf("%s: the servers %v, want %d", to, got, want)
		}
	}
}

// A node that starts again replaces its devices, and prepare changes nothing of what is there. /sys shows the network of
// the node.
func TestJoinAgain(t *testing.T) {
	w := nettest.NewTestbed(t, "")
	nettest.Do(t, w.Host, func() error { return errors.Join(Enter(1), Enter(1)) })
	newNode(t, w.Host, 2)
	again := newNode(t, w.Host, 2)
	serve(t, w.Host, "node1", Address(1), 90)
	expect(t, "node 2", again, Address(1), 90, "node1 10.87.0.2")
	nettest.Do(t, w.Host, func() error {
		const cgroups = "/sys/fs/cgroup"
		before, err := os.ReadDir(cgroups)
		if err != nil {
			return err
		}
		if err := Enter(3); err != nil {
			return err
		}
		devices, err := os.ReadDir("/sys/class/net")
		if err != nil || len(devices) != 2 {
			t.Errorf("/sys/class/net has %v", devices)
		}
		if after, cerr := os.ReadDir(cgroups); cerr != nil || len(before) > 0 && len(after) == 0 {
			t.Errorf("%s is empty: %v", cgroups, cerr)
		}
		return err
	})
}
