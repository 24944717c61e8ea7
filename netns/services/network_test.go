package services

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// ranges are what Services' addresses in these tests are from.
var ranges = []netip.Prefix{netip.MustParsePrefix("10.88.128.0/17"), netip.MustParsePrefix("fd88::8000/113")}

// network is a router with pods, as a user's pods have it.
type network struct {
	t      testing.TB
	path   string
	router netns.Router
	pool   netns.Pool
	pods   map[string]string // namespaces by the pods' names
}

func in(t testing.TB, ns string, f func() error) {
	t.Helper()
	if err := nsthread.Do(f, ns); err != nil {
		t.Fatal(err)
	}
}

func newNetwork(t testing.TB, pods ...Pod) *network {
	t.Helper()
	n := &network{t: t, path: testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net", pods: map[string]string{}}
	n.router = netns.OpenRouter(n.path)
	var err error
	if n.pool, err = n.router.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		n.add(p)
	}
	return n
}

// add joins a pod to the network, at the slot that its addresses are of. What it sends to
// the host is taken, and goes nowhere.
func (n *network) add(p Pod) {
	n.t.Helper()
	last := p.Addresses[0].As4()[3]
	slot := netns.Slot(last - 1)
	if n.pool.Of(slot).V4 != p.Addresses[0] {
		n.t.Fatalf("slot %d has %v", slot, n.pool.Of(slot))
	}
	n.pods[p.Name] = testenv.Namespaces(n.t, unix.CLONE_NEWNET) + "/ns/net"
	if err := netns.LoopbackUp(n.pods[p.Name]); err != nil {
		n.t.Fatal(err)
	}
	if err := n.router.Attach(n.pods[p.Name], n.pool, slot); err != nil {
		n.t.Fatal(err)
	}
	wires, err := n.router.Wire(n.pool, slot)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := wires.Close(); err != nil {
			n.t.Error(err)
		}
	})
}

// serve answers in a pod, on a port: to a connection, or to a word, with the pod's name
// and who has asked.
func (n *network) serve(pod, protocol string, port int) {
	n.t.Helper()
	var l net.Listener
	var u net.PacketConn
	in(n.t, n.pods[pod], func() (err error) {
		if protocol == "TCP" {
			l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
			return err
		}
		u, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		return err
	})
	if protocol == "UDP" {
		n.t.Cleanup(func() { u.Close() })
		go func() {
			b := make([]byte, 100)
			for {
				_, from, err := u.ReadFrom(b)
				if err != nil {
					return
				}
				u.WriteTo([]byte(pod+" "+from.(*net.UDPAddr).IP.String()), from)
			}
		}()
		return
	}
	n.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(pod + " " + c.RemoteAddr().(*net.TCPAddr).IP.String()))
			c.Close()
		}
	}()
}

// ask connects from a pod and returns what it is answered.
func (n *network) ask(pod, protocol, address string) (answer string, err error) {
	kind := map[string]string{"TCP": "tcp", "UDP": "udp"}[protocol]
	derr := nsthread.Do(func() error {
		c, err := (&net.Dialer{Timeout: time.Minute}).Dial(kind, address)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("who?")); err != nil {
			return err
		}
		b := make([]byte, 100)
		k, err := c.Read(b)
		answer = string(b[:k])
		return err
	}, n.pods[pod])
	return answer, derr
}

func (n *network) apply(d Directory) bool {
	n.t.Helper()
	changed, err := Apply(n.path, ranges, d)
	if err != nil {
		n.t.Fatal(err)
	}
	return changed
}
