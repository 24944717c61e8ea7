package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func addresses(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

var web = map[string]string{"app": "web"}

// aPod returns a pod with the addresses 10.88.0.N and fd88::N.
func aPod(name string, n int, change ...func(*Pod)) Pod {
	p := Pod{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web", "tier": "front"}, Ready: true,
		Addresses: addresses(fmt.Sprintf("10.88.0.%d", n), fmt.Sprintf("fd88::%d", n)),
		Ports:     []NamedPort{{"http", "TCP", 8080}, {"dns", "UDP", 5353}}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func aService(change ...func(*Service)) Service {
	s := Service{Namespace: "ns", Name: "web", Addresses: addresses("10.88.128.1"), Selector: web,
		Ports: []Port{{Name: "http", Protocol: "TCP", Port: 80, TargetName: "http"}}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// fixed returns a Service without a selector, with endpoints; an endpoint that ends in ! is not ready.
func fixed(list ...string) Service {
	return aService(func(s *Service) {
		s.Selector = nil
		for _, text := range list {
			a, notReady := strings.CutSuffix(text, "!")
			s.Fixed = append(s.Fixed, Pod{Name: a, Addresses: addresses(a), Ready: !notReady, Fixed: true, Outside: !strings.HasPrefix(a, "10.88."), Ports: []NamedPort{{"http", "TCP", 8080}}})
		}
	})
}

func spelled(d Catalog) string {
	var lines []string
	for _, r := range d.routes() {
		var to []string
		for _, e := range r.to {
			to = append(to, e.String())
		}
		line := fmt.Sprintf("%s/%s → %s", r.from, r.protocol, strings.Join(to, " "))
		if r.outside {
			line += " outside"
		}
		if r.affinity > 0 {
			line += " with affinity"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestRoutes(t *testing.T) {
	unready := func(p *Pod) { p.Ready = false }
	for _, c := range []struct {
		name string
		s    Service
		pods []Pod
		want string
	}{
		{"ready pods, by name", aService(), []Pod{aPod("b", 3), aPod("a", 2), aPod("c", 4, unready)}, "10.88.128.1:80/TCP → 10.88.0.2:8080 10.88.0.3:8080"},
		{"nobody", aService(), nil, "10.88.128.1:80/TCP →"},
		{"another namespace", aService(), []Pod{aPod("a", 2, func(p *Pod) { p.Namespace = "other" })}, "10.88.128.1:80/TCP →"},
		{"another label", aService(), []Pod{aPod("a", 2, func(p *Pod) { p.Labels = map[string]string{"app": "db"} })}, "10.88.128.1:80/TCP →"},
		{"a selector with two labels", aService(func(s *Service) { s.Selector = map[string]string{"app": "web", "tier": "back"} }), []Pod{aPod("a", 2)}, "10.88.128.1:80/TCP →"},
		{"an empty label is not a missing one", aService(func(s *Service) { s.Selector = map[string]string{"none": ""} }), []Pod{aPod("a", 2)}, "10.88.128.1:80/TCP →"},
		{"no selector", aService(func(s *Service) { s.Selector = nil }), []Pod{aPod("a", 2)}, "10.88.128.1:80/TCP →"},
		{"not ready ones too", aService(func(s *Service) { s.PublishNotReady = true }), []Pod{aPod("a", 2, unready)}, "10.88.128.1:80/TCP → 10.88.0.2:8080"},
		{"a number", aService(func(s *Service) { s.Ports[0] = Port{Protocol: "UDP", Port: 53, Target: 5353} }), []Pod{aPod("a", 2)}, "10.88.128.1:53/UDP → 10.88.0.2:5353"},
		{"a name of another protocol", aService(func(s *Service) { s.Ports[0].TargetName = "dns" }), []Pod{aPod("a", 2)}, "10.88.128.1:80/TCP →"},
		{"a name that differs from pod to pod", aService(), []Pod{aPod("a", 2), aPod("b", 3, func(p *Pod) { p.Ports[0].Port = 9090 }), aPod("c", 4, func(p *Pod) { p.Ports = nil })},
			"10.88.128.1:80/TCP → 10.88.0.2:8080 10.88.0.3:9090"},
		{"two ports, two families", aService(func(s *Service) {
			s.Addresses = addresses("10.88.128.1", "fd88::8001")
			s.Ports = append(s.Ports, Port{Name: "dns", Protocol: "UDP", Port: 53, TargetName: "dns"})
		}), []Pod{aPod("a", 2)}, "10.88.128.1:53/UDP → 10.88.0.2:5353\n10.88.128.1:80/TCP → 10.88.0.2:8080\n[fd88::8001]:53/UDP → [fd88::2]:5353\n[fd88::8001]:80/TCP → [fd88::2]:8080"},
		{"a pod without an address of the family", aService(func(s *Service) { s.Addresses = addresses("fd88::8001") }), []Pod{aPod("a", 2, func(p *Pod) { p.Addresses = p.Addresses[:1] })}, "[fd88::8001]:80/TCP →"},
		{"affinity", aService(func(s *Service) { s.Affinity = time.Hour }), []Pod{aPod("a", 2)}, "10.88.128.1:80/TCP → 10.88.0.2:8080 with affinity"},
		{"endpoints of other hosts, by the port's name; ready ones", fixed("192.0.2.1", "192.0.2.2!", "192.0.2.3"), nil, "10.88.128.1:80/TCP → 192.0.2.1:8080 192.0.2.3:8080 outside"},
		{"an endpoint of the other family", fixed("2001:db8::1"), nil, "10.88.128.1:80/TCP → [2001:db8::1]:8080 outside"},
		{"endpoints of pods", fixed("10.88.0.2", "10.88.0.3"), nil, "10.88.128.1:80/TCP → 10.88.0.2:8080 10.88.0.3:8080"},
		{"endpoints of pods and of other hosts", fixed("10.88.0.2", "192.0.2.1"), nil, "10.88.128.1:80/TCP → 192.0.2.1:8080 outside"},
		{"endpoints without the port", func() Service { s := fixed("192.0.2.1"); s.Ports[0].Name = "other"; return s }(), nil, "10.88.128.1:80/TCP →"},
		{"headless", aService(func(s *Service) { s.Addresses = nil }), []Pod{aPod("a", 2)}, ""},
	} {
		if diff := cmp.Diff(c.want, spelled(Catalog{[]Service{c.s}, c.pods})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestOutside: connections go to the endpoints in turn, or, with affinity, always to the same.
func TestOutside(t *testing.T) {
	d := Catalog{Services: []Service{fixed("192.0.2.1", "192.0.2.2")}}
	client, to := netip.MustParseAddr("10.88.0.9"), netip.MustParseAddrPort("10.88.128.1:80")
	got := map[string]int{}
	for turn := range uint32(4) {
		address, ok := d.Outside(client, "TCP", to, turn, fixedSlots{})
		if !ok {
			t.Fatal("no endpoint")
		}
		got[address.String()]++
	}
	if diff := cmp.Diff(map[string]int{"192.0.2.1:8080": 2, "192.0.2.2:8080": 2}, got); diff != "" {
		t.Error(diff)
	}
	d.Services[0].Affinity = time.Hour
	first, _ := d.Outside(client, "TCP", to, 0, fixedSlots{})
	if again, _ := d.Outside(client, "TCP", to, 1, fixedSlots{}); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	for _, c := range []struct{ protocol, to string }{{"UDP", "10.88.128.1:80"}, {"TCP", "10.88.128.1:81"}, {"TCP", "10.88.128.2:80"}} {
		if address, ok := d.Outside(client, c.protocol, netip.MustParseAddrPort(c.to), 0, fixedSlots{}); ok {
			t.Errorf("%s %s leads to %s", c.protocol, c.to, address)
		}
	}
}

func TestRoutesHaveOneOrder(t *testing.T) {
	d := Catalog{[]Service{aService(), aService(func(s *Service) { s.Name, s.Addresses = "x", addresses("10.88.128.9", "10.88.128.3") })}, []Pod{aPod("a", 2), aPod("b", 3)}}
	want := spelled(d)
	slices.Reverse(d.Services)
	slices.Reverse(d.Pods)
	if got := spelled(d); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
