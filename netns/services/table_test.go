package services

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// served returns Services of both families with a port of each protocol, and the pods.
func served(pods ...Pod) Catalog {
	return Catalog{[]Service{aService(func(s *Service) {
		s.Addresses = addresses("10.88.128.1", "fd88::8001")
		s.Ports = append(s.Ports, Port{Name: "dns", Protocol: "UDP", Port: 53, TargetName: "dns"})
	})}, pods}
}

var asked = []struct{ protocol, address, client string }{
	{"TCP", "10.88.128.1:80", "10.88.0.9"},
	{"TCP", "[fd88::8001]:80", "fd88::9"},
	{"UDP", "10.88.128.1:53", "10.88.0.9"},
	{"UDP", "[fd88::8001]:53", "fd88::9"},
}

func TestConnectionsReachReadyPodsInTurn(t *testing.T) {
	testenv.NoLeaks(t)
	client := aPod("client", 9, func(p *Pod) { p.Labels = nil })
	a, b, c := aPod("a", 2), aPod("b", 3), aPod("c", 4, func(p *Pod) { p.Ready = false })
	n := newTestbed(t, client, a, b, c)
	for _, pod := range []string{"a", "b", "c"} {
		n.serve(pod, "TCP", 8080)
		n.serve(pod, "UDP", 5353)
	}
	n.apply(served(client, a, b, c))
	for _, q := range asked {
		got := map[string]int{}
		for range 10 {
			answer, err := n.ask("client", q.protocol, q.address)
			if err != nil {
				t.Fatalf("%s %s: %v", q.protocol, q.address, err)
			}
			got[answer]++
		}
		if got["a "+q.client] != 5 || got["b "+q.client] != 5 {
			t.Errorf("%s %s: %v, want a and b by turns, asked by %s", q.protocol, q.address, got, q.client)
		}
	}
	// Readiness moves to other pods.
	a.Ready, c.Ready = false, true
	b.Ready = false
	n.apply(served(client, a, b, c))
	for _, q := range asked {
		if answer, err := n.ask("client", q.protocol, q.address); err != nil || answer != "c "+q.client {
			t.Errorf("%s %s: %q, %v, want c", q.protocol, q.address, answer, err)
		}
	}
}

// TestTurnsAfterChanges: connections reach all pods, even if a Service changes between any two of them.
func TestTurnsAfterChanges(t *testing.T) {
	testenv.NoLeaks(t)
	client, a, b := aPod("client", 9, func(p *Pod) { p.Labels = nil }), aPod("a", 2), aPod("b", 3)
	n := newTestbed(t, client, a, b)
	n.serve("a", "TCP", 8080)
	n.serve("b", "TCP", 8080)
	got := map[string]bool{}
	for i := range 60 { // one of 2^59 runs fails by chance
		catalog := served(client, a, b)
		if i%2 == 0 {
			catalog.Services = append(catalog.Services, aService(func(s *Service) { s.Name, s.Addresses = "other", addresses("10.88.128.2") }))
		}
		n.apply(catalog)
		answer, err := n.ask("client", "TCP", "10.88.128.1:80")
		if err != nil {
			t.Fatal(err)
		}
		got[answer] = true
	}
	if len(got) != 2 {
		t.Errorf("answers of %v, want a and b", got)
	}
}

func TestNoEndpointRefuses(t *testing.T) {
	testenv.NoLeaks(t)
	client := aPod("client", 9, func(p *Pod) { p.Labels = nil })
	n := newTestbed(t, client, aPod("a", 2))
	n.serve("a", "TCP", 8080)
	n.apply(served(client))
	for _, q := range asked {
		if answer, err := n.ask("client", q.protocol, q.address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s %s without endpoints: %q, %v", q.protocol, q.address, answer, err)
		}
	}
	n.apply(served(client, aPod("a", 2)))
	for protocol, addresses := range map[string][]string{"TCP": {"10.88.128.1:81", "10.88.200.7:80", "[fd88::9007]:80"}, "UDP": {"10.88.128.1:80", "[fd88::8001]:80"}} {
		for _, address := range addresses {
			if answer, err := n.ask("client", protocol, address); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%s %s, which no Service has: %q, %v", protocol, address, answer, err)
			}
		}
	}
}

func TestHairpin(t *testing.T) {
	testenv.NoLeaks(t)
	a := aPod("a", 2)
	n := newTestbed(t, a)
	n.serve("a", "TCP", 8080)
	n.serve("a", "UDP", 5353)
	n.apply(served(a))
	for _, q := range asked {
		answer, err := n.ask("a", q.protocol, q.address)
		if want := map[bool]string{true: "a 10.88.128.0", false: "a fd88::8000"}[q.client == "10.88.0.9"]; err != nil || answer != want {
			t.Errorf("%s %s: %q, %v, want %q", q.protocol, q.address, answer, err, want)
		}
	}
}

func TestServiceAffinity(t *testing.T) {
	testenv.NoLeaks(t)
	var pods []Pod
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		pods = append(pods, aPod(name, i+2))
	}
	n := newTestbed(t, pods...)
	for _, p := range pods {
		n.serve(p.Name, "TCP", 8080)
		n.serve(p.Name, "UDP", 5353)
	}
	n.apply(sticky(pods...))
	serving := func(client, protocol, address string) string {
		answer, err := n.ask(client, protocol, address)
		if err != nil {
			t.Fatal(err)
		}
		return answer[:1]
	}
	of := map[string]string{}
	distinct := map[string]bool{}
	for _, p := range pods {
		of[p.Name] = serving(p.Name, "TCP", "10.88.128.1:80")
		distinct[of[p.Name]] = true
		for range 5 {
			if got := serving(p.Name, "TCP", "10.88.128.1:80"); got != of[p.Name] {
				t.Errorf("%s was served by %s, then by %s", p.Name, of[p.Name], got)
			}
		}
		if got := serving(p.Name, "UDP", "10.88.128.1:53"); got != of[p.Name] {
			t.Errorf("%s is served by %s on one port, by %s on the other", p.Name, of[p.Name], got)
		}
	}
	if len(distinct) < 2 {
		t.Errorf("all clients are served by one: %v", of)
	}
	// When one pod disappears, only its clients move.
	gone := of["a"]
	var left []Pod
	for _, p := range pods {
		if p.Name != gone {
			left = append(left, p)
		}
	}
	n.apply(sticky(left...))
	for client, was := range of {
		if got := serving(client, "TCP", "10.88.128.1:80"); was != gone && got != was || got == gone {
			t.Errorf("%s moved from %s to %s when %s went", client, was, got, gone)
		}
	}
}

func TestOnlyChangesAreMade(t *testing.T) {
	testenv.NoLeaks(t)
	a := aPod("a", 2)
	n := newTestbed(t)
	if !n.apply(served(a)) || n.apply(served(a)) {
		t.Error("the table is made once")
	}
	if !n.apply(served()) || !n.apply(served(a)) {
		t.Error("a change is none")
	}
	// The same directory in another order gives the same table.
	d := served(aPod("b", 3), a)
	n.apply(served(a, aPod("b", 3)))
	if n.apply(d) {
		t.Error("another order is a change")
	}
	if _, err := Apply("/proc/self/ns/none", ranges, served(a)); err == nil {
		t.Error("no error without a router")
	}
}

// Only pods that reach the cluster reach the addresses of its Services.
func TestStrangersAreRefused(t *testing.T) {
	testenv.NoLeaks(t)
	stranger, visitor, a := aPod("stranger", 8, func(p *Pod) { p.Labels = nil }), aPod("client", 9, func(p *Pod) { p.Labels, p.ReachesCluster = nil, true }), aPod("a", 2)
	n := newTestbed(t, stranger, visitor, a)
	n.serve("a", "TCP", 8080)
	n.serve("a", "UDP", 5353)
	d := served(stranger, visitor, a)
	own := d.Services[0]
	own.Name = "own"
	d.Services[0].OfCluster, d.Services[0].Addresses = true, addresses("10.96.0.10", "2001:db8:96::a")
	d.Services = append(d.Services, own)
	n.apply(d)
	ask := func(pod string, reaches bool, list ...string) {
		t.Helper()
		for _, q := range list {
			protocol, address, _ := strings.Cut(q, " ")
			if answer, err := n.ask(pod, protocol, address); reaches && err != nil || !reaches && !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%s to %s: %q, %v", pod, q, answer, err)
			}
		}
	}
	cluster := []string{"TCP 10.96.0.10:80", "TCP [2001:db8:96::a]:80", "UDP 10.96.0.10:53", "UDP [2001:db8:96::a]:53"}
	ask("client", true, cluster...)
	ask("stranger", false, cluster...)
	ask("stranger", true, "TCP 10.88.128.1:80", "UDP [fd88::8001]:53")
	d.Pods[0].ReachesCluster = true
	n.apply(d)
	ask("stranger", true, cluster...)
}

// Services of a Kubernetes cluster have addresses outside the pods' network.
func TestForeignAddresses(t *testing.T) {
	testenv.NoLeaks(t)
	client, a, b := aPod("client", 9, func(p *Pod) { p.Labels = nil }), aPod("a", 2), aPod("b", 3)
	n := newTestbed(t, client, a, b)
	for _, pod := range []string{"a", "b"} {
		n.serve(pod, "TCP", 8080)
		n.serve(pod, "UDP", 5353)
	}
	d := served(client, a, b)
	d.Services[0].Addresses = addresses("10.96.0.10", "2001:db8:96::a")
	n.apply(d)
	for _, q := range []struct{ protocol, address, client string }{
		{"TCP", "10.96.0.10:80", "10.88.0.9"}, {"TCP", "[2001:db8:96::a]:80", "fd88::9"},
		{"UDP", "10.96.0.10:53", "10.88.0.9"}, {"UDP", "[2001:db8:96::a]:53", "fd88::9"},
	} {
		got := map[string]bool{}
		for range 4 {
			answer, err := n.ask("client", q.protocol, q.address)
			if err != nil {
				t.Fatalf("%s %s: %v", q.protocol, q.address, err)
			}
			got[answer] = true
		}
		if !got["a "+q.client] || !got["b "+q.client] {
			t.Errorf("%s %s: %v, want a and b, asked by %s", q.protocol, q.address, got, q.client)
		}
	}
	for protocol, address := range map[string]string{"TCP": "10.96.0.10:81", "UDP": "[2001:db8:96::a]:80"} {
		if answer, err := n.ask("client", protocol, address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s %s, which the Service does not have: %q, %v", protocol, address, answer, err)
		}
	}
	d.Pods = d.Pods[:1]
	n.apply(d)
	if answer, err := n.ask("client", "TCP", "10.96.0.10:80"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without endpoints: %q, %v", answer, err)
	}
}

// TestFlowsLeaveGoneEndpoints: the datagrams of a client that keeps its port reach an endpoint that the Service has. A flow stays
// with its endpoint as long as the Service has it, and begins before there is one.
func TestFlowsLeaveGoneEndpoints(t *testing.T) {
	testenv.NoLeaks(t)
	client := aPod("client", 9, func(p *Pod) { p.Labels = nil })
	a, b := aPod("a", 2), aPod("b", 3)
	n := newTestbed(t, client, a, b)
	n.serve("a", "UDP", 5353)
	n.serve("b", "UDP", 5353)
	flows := map[string]net.Conn{}
	for _, address := range []string{"172.20.0.1:53", "10.88.128.1:53", "[fd88::8001]:53"} {
		c, err := n.dial("client", "udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		flows[address] = c
	}
	ask := func(c net.Conn) string {
		_, err := c.Write([]byte("who?"))
		answer := make([]byte, 100)
		k := 0
		if err == nil {
			k, err = c.Read(answer)
		}
		if err != nil {
			return err.Error()
		}
		name, _, _ := strings.Cut(string(answer[:k]), " ")
		return name
	}
	n.apply(served(client))
	if _, err := flows["172.20.0.1:53"].Write([]byte("who?")); err != nil { // it leaves the pods' network: no Service has the address
		t.Fatal(err)
	}
	for _, step := range []struct {
		pods []Pod
		want string
	}{{[]Pod{a}, "a"}, {[]Pod{a, b}, "a"}, {[]Pod{b}, "b"}, {[]Pod{a, b}, "b"}} {
		d := served(append(step.pods, client)...)
		d.Services[0].Addresses = append(d.Services[0].Addresses, netip.MustParseAddr("172.20.0.1"))
		n.apply(d)
		for address, c := range flows {
			if got := ask(c); got != step.want {
				t.Errorf("%s with %d endpoints: %s, want %s", address, len(step.pods), got, step.want)
			}
		}
	}
}
