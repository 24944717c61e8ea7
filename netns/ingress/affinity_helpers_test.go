package ingress

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// affinityBed is a host, a remote host with many addresses, and two pods on a router as a user's
// pods have it, each with a server for the same port of the host whose clients stay with their
// pods.
type affinityBed struct {
	t     *testing.T
	world *nettest.Testbed
	pods  []*affinityPod

	mu     sync.Mutex
	of     map[netip.Addr]int // clients' pods
	hidden bool               // pods do not see clients' addresses
	port   uint16             // of other pods
}

// affinityPod is one of the pods.
type affinityPod struct {
	ns     string
	addrs  []netip.Addr
	inside *NetnsDialer
	server *Server
	files  map[string]*os.File // by protocol
}

const sharedPort = 30080

func newAffinityBed(t *testing.T) *affinityBed {
	t.Helper()
	w := nettest.NewTestbed(t, "")
	s := &affinityBed{t: t, world: w, of: map[netip.Addr]int{}, port: 80}
	for slot := ipam.Slot(1); slot <= 2; slot++ {
		p := &affinityPod{addrs: router.UsableAddresses(w.Pool, slot), files: map[string]*os.File{}}
		if slot == 1 {
			p.ns, _ = w.NewPodWithTraffic(t, slot)
		} else { // its outgoing packets leave through the kernel, except answers
			p.ns = w.NewPod(t, slot)
			traffic, err := w.Router.OpenMasqueraded(p.ns, w.Pool, slot, 1500)
			must(t, err)
			t.Cleanup(func() { traffic.Close() })
		}
		whoServer(t, p.ns, fmt.Sprintf(" %d", slot-1))
		p.inside = &NetnsDialer{Addrs: p.addrs, Transparent: true, PodPrefixes: []netip.Prefix{w.Pool.V4, w.Pool.V6}}
		must(t, p.inside.Start(w.RouterNS))
		t.Cleanup(p.inside.Close)
		s.pods = append(s.pods, p)
	}
	return s
}

// open makes a pod listen on the port.
func (s *affinityBed) open(i int, by UDPDialer) {
	s.t.Helper()
	p := s.pods[i]
	p.server = New(by)
	s.t.Cleanup(p.server.Close)
	for _, protocol := range []string{"tcp", "udp"} {
		h := hostport.Port{Protocol: protocol, Number: sharedPort, Shared: true}
		nettest.Do(s.t, s.world.Host, func() (err error) { p.files[protocol], err = listening(h); return err })
		s.t.Cleanup(func() { p.files[protocol].Close() })
		s.share(i, protocol)
	}
}

// share serves it.
func (s *affinityBed) share(i int, protocol string) {
	s.t.Helper()
	p := s.pods[i]
	must(s.t, p.server.AddShared(p.files[protocol], protocol, 80, func(client netip.Addr) (netip.AddrPort, bool) { return s.elsewhere(i, client) }, p.inside))
}

// hold makes a pod listen on a port of its own; it sends x on each connection and nothing else.
func (s *affinityBed) hold(i int, port uint16) {
	s.t.Helper()
	nettest.Serve(s.t, s.pods[i].ns, fmt.Sprintf(":%d", port), func(c *net.TCPConn) {
		c.Write([]byte("x"))
		io.Copy(io.Discard, c)
	})
}

// idle waits until a server has no connections.
func (s *affinityBed) idle(i int) {
	s.t.Helper()
	for deadline := time.Now().Add(answeredTimeout / 2); !s.pods[i].server.Pause(); {
		if time.Now().After(deadline) {
			s.t.Fatal("flows that nobody can answer any more are open")
		}
	}
	s.pods[i].server.Resume()
}

// shut stops the pod's listener.
func (s *affinityBed) shut(i int) {
	for _, file := range s.pods[i].files {
		s.pods[i].server.Remove(file)
		file.Close()
	}
}

// move assigns clients to pods.
func (s *affinityBed) move(to func(client netip.Addr) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for client := range s.of {
		s.of[client] = to(client)
	}
}

func (s *affinityBed) elsewhere(own int, client netip.Addr) (netip.AddrPort, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.of[client]
	if !known || is == own {
		return netip.AddrPort{}, false
	}
	for _, a := range s.pods[is].addrs {
		if a.Is4() == client.Is4() {
			return netip.AddrPortFrom(a, s.port), !s.hidden
		}
	}
	return netip.AddrPortFrom(s.pods[is].addrs[0], s.port), !s.hidden
}

// join gives the remote host clients of both families, alternately of the first pod and the second.
func (s *affinityBed) join(n int) (clients []netip.Addr) {
	s.t.Helper()
	for i := range n {
		for _, text := range []string{fmt.Sprintf("10.77.0.%d/24", 100+i), fmt.Sprintf("fd77::%x/64", 0x100+i)} {
			nettest.Do(s.t, s.world.Remote, func() error { return nettest.AddAddresses(nettest.RemoteLink, text) })
			client := netip.MustParsePrefix(text).Addr()
			s.of[client] = i % 2
			clients = append(clients, client)
		}
	}
	return clients
}

// dial connects as a client.
func (s *affinityBed) dial(network string, client netip.Addr) net.Conn {
	s.t.Helper()
	to := nettest.HostAddr
	if client.Is6() {
		to = nettest.HostAddr6
	}
	to = net.JoinHostPort(to, strconv.Itoa(sharedPort))
	c, err := nettest.DialFrom(s.world.Remote, network, client.String(), to, nettest.Timeout)
	must(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// reply returns which pod answers, and the client's address as it sees it.
func (s *affinityBed) reply(c net.Conn) (pod int, as netip.AddrPort) {
	s.t.Helper()
	if _, datagrams := c.LocalAddr().(*net.UDPAddr); datagrams {
		c.Write([]byte("?"))
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	must(s.t, err)
	fields := strings.Fields(string(b[:n]))
	as, err = netip.ParseAddrPort(fields[0])
	must(s.t, err)
	pod, err = strconv.Atoi(fields[len(fields)-1])
	must(s.t, err)
	return pod, netip.AddrPortFrom(as.Addr().Unmap(), as.Port())
}
