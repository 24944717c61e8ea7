package services

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// ranges are the address ranges of Services in these tests.
var ranges = []netip.Prefix{netip.MustParsePrefix("10.88.128.0/17"), netip.MustParsePrefix("fd88::8000/113")}

// testbed is a router with pods, set up as for a user's pods.
type testbed struct {
	t testing.TB
	*nettest.RouterBed
	pods map[string]string // namespaces by the pods' names
	used map[string]bool   // pods with their local addresses of datagrams
}

func newTestbed(t testing.TB, pods ...Pod) *testbed {
	t.Helper()
	n := &testbed{t: t, RouterBed: nettest.NewRouterBed(t), pods: map[string]string{}, used: map[string]bool{}}
	for _, p := range pods {
		n.add(p)
	}
	return n
}

// add joins a pod to the network at the slot that its addresses belong to. What it sends to the
// host is accepted and dropped.
func (n *testbed) add(p Pod) {
	n.t.Helper()
	last := p.Addresses[0].As4()[3]
	slot := ipam.Slot(last - 1)
	if n.Pool.Addresses(slot).V4 != p.Addresses[0] {
		n.t.Fatalf("slot %d has %v", slot, n.Pool.Addresses(slot))
	}
	n.pods[p.Name], _ = n.NewPodWithTraffic(n.t, slot)
}

// serve answers connections and datagrams on a port in a pod with the pod's name and the client's
// address.
func (n *testbed) serve(pod, protocol string, port int) {
	n.t.Helper()
	ns, address := n.pods[pod], fmt.Sprintf(":%d", port)
	if protocol == "UDP" {
		nettest.ServePacket(n.t, ns, address, func(from net.Addr, _ []byte) []byte {
			return []byte(pod + " " + from.(*net.UDPAddr).IP.String())
		})
		return
	}
	nettest.Serve(n.t, ns, address, func(c *net.TCPConn) {
		c.Write([]byte(pod + " " + c.RemoteAddr().(*net.TCPAddr).IP.String()))
	})
}

// ask connects from a pod and returns the answer.
func (n *testbed) ask(pod, protocol, address string) (string, error) {
	c, err := n.dial(pod, strings.ToLower(protocol), address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write([]byte("who?")); err != nil {
		return "", err
	}
	b := make([]byte, 100)
	k, err := c.Read(b)
	return string(b[:k]), err
}

// dial connects from a pod. It uses no port twice for datagrams: one from the same port belongs to the same flow,
// which keeps its endpoint.
func (n *testbed) dial(pod, network, address string) (net.Conn, error) {
	for {
		c, err := nettest.Dial(n.pods[pod], network, address)
		if err != nil || network != "udp" {
			return c, err
		}
		flow := pod + " " + c.LocalAddr().String()
		if !n.used[flow] {
			n.used[flow] = true
			return c, nil
		}
		c.Close()
	}
}

func (n *testbed) apply(d Catalog) bool {
	n.t.Helper()
	changed, err := Apply(n.RouterNS, ranges, d)
	if err != nil {
		n.t.Fatal(err)
	}
	return changed
}
