package network

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/services"
)

// A NodePort that cannot be served now, for example without a free descriptor, is tried again at the next
// change of the Services, and does not count as served.
func TestNodePortIsTriedAgain(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	h := hostport.Port{Protocol: "tcp", Number: 30471, Shared: true}
	file, err := hostport.Bind(h)
	if err != nil {
		t.Fatal(err)
	}
	p := NewHostPorts(nil)
	p.RecoverNodePort(h.String(), file)
	defer p.NodePorts[h.String()].file.Close()
	p.active, p.server = true, ingress.New(nil) // it serves nothing
	defer p.server.Close()
	for range 2 {
		if err := p.updateNodePorts(nil, []services.NodePort{{Protocol: "TCP", Port: 30471, To: 80}}); err == nil || p.NodePorts[h.String()].served {
			t.Errorf("it is taken for served: %v", err)
		}
	}
}

// If the dialer to other pods cannot be made, for example without a free descriptor, the error is returned
// each time, and no connection is forwarded.
func TestNoWayToOtherPods(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	h := hostport.Port{Protocol: "udp", Number: 30472, Shared: true}
	file, err := hostport.Bind(h)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := &Network{netns: filepath.Join(t.TempDir(), "nothing")}
	p := NewHostPorts(nil)
	p.server = ingress.New(nil)
	for range 2 {
		err := p.serveNodePort(s, file, h.Protocol, services.NodePort{Protocol: "UDP", Port: 30472, To: 80, Affinity: true})
		if !errors.Is(err, fs.ErrNotExist) || p.dialer != nil {
			t.Errorf("%v; the way is %+v", err, p.dialer)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// clientOwner follows the current view of pods, and returns no other pod for the pod's own clients.
func TestClientsOfOthers(t *testing.T) {
	pool := ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}
	web := map[string]string{"app": "web"}
	a := services.Pod{Namespace: "ns", Name: "a", Labels: web, Ready: true, Addresses: router.UsableAddresses(pool, 1)}
	b := services.Pod{Namespace: "ns", Name: "b", Labels: web, Ready: true, Addresses: router.UsableAddresses(pool, 2), UserSpaceStack: true}
	node := services.NodePort{Protocol: "TCP", Port: 30471, To: 80, Affinity: true}
	s := &Network{store: store.Pod{Namespace: "ns", Name: "a"}, Pool: pool, Slot: 1}
	know := func(pods ...services.Pod) {
		s.services.readAt, s.services.stamp = time.Now().Add(time.Hour), s.store.EndpointVersion()
		s.services.view = &dns.View{Catalog: services.Catalog{Pods: pods, Services: []services.Service{
			{Namespace: "ns", Name: "web", Selector: web, Affinity: time.Hour, Ports: []services.Port{{Protocol: "TCP", Port: 80, Target: 80, NodePort: 30471}}},
		}}}
	}
	elsewhere := s.clientOwner(node)
	counts := func() (own, others int) {
		for i := range 100 {
			to, shown := elsewhere(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			switch {
			case !to.IsValid():
				own++
			case to == netip.AddrPortFrom(b.Addresses[0], 80) && !shown:
				others++
			default:
				t.Fatalf("client %d: %s, %v", i, to, shown)
			}
		}
		return own, others
	}
	know(a, b)
	if own, others := counts(); own < 10 || others < 10 {
		t.Errorf("of 100 clients %d are the pod's, %d the other's", own, others)
	}
	know(a)
	if own, others := counts(); own != 100 {
		t.Errorf("the other has gone: %d and %d", own, others)
	}
	a.Ready = false
	know(a, b)
	if own, others := counts(); others != 100 {
		t.Errorf("it is not ready: %d and %d", own, others)
	}
	know()
	if own, others := counts(); own != 100 {
		t.Errorf("nothing is known: %d and %d", own, others)
	}
}

// A connection to a port wakes only the thread that accepts it, no matter which process has opened the
// port.
func TestPortsAreQuiet(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	h := hostport.Port{Protocol: "tcp", Number: 30473}
	for way, keep := range map[string]func(p *HostPorts, file *os.File) *os.File{
		"a hostPort": func(p *HostPorts, file *os.File) *os.File {
			if err := p.Keep(h.String(), file); err != nil {
				t.Fatal(err)
			}
			return p.open[h.String()]
		},
		"a port of a Service": func(p *HostPorts, file *os.File) *os.File {
			p.RecoverNodePort(h.String(), file)
			return p.NodePorts[h.String()].file
		},
	} {
		file, err := hostport.Bind(h)
		if err != nil {
			t.Fatal(err)
		}
		kept := keep(NewHostPorts(nil), file)
		if testenv.IsWaitedFor(t, int(kept.Fd())) {
			t.Errorf("%s wakes who does not take its connections", way)
		}
		kept.Close()
	}
}
