package services

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// sticky returns the Services of served with node ports and client affinity.
func sticky(pods ...Pod) Catalog {
	d := served(pods...)
	d.Services[0].Affinity = time.Hour
	d.Services[0].Ports[0].NodePort, d.Services[0].Ports[1].NodePort = 30080, 30053
	return d
}

// fixedSlots are Slots that follow from the client's address.
type fixedSlots struct{}

func (fixedSlots) Slot(_, client netip.Addr, _ time.Duration) int {
	return int(weight(0, client) % affinitySlots)
}

// clients returns many addresses of a family.
func clients(six bool) (list []netip.Addr) {
	for i := range 500 {
		text := fmt.Sprintf("192.0.%d.%d", 2+i/250, 1+i%250)
		if six {
			text = fmt.Sprintf("2001:db8::%x:%x", i%7, i)
		}
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

// Each client has a pod and all pods have clients. When pods change, only those clients move whose
// pod disappears or that a new pod takes over.
func TestClientsKeepTheirPod(t *testing.T) {
	all := []Pod{aPod("a", 2), aPod("b", 3), aPod("c", 4), aPod("d", 5)}
	unready := func(i int) []Pod {
		pods := append([]Pod(nil), all...)
		pods[i].Ready = false
		return pods
	}
	for _, six := range []bool{false, true} {
		whole := sticky(all...)
		stays, names := whole.Affinity("TCP", 30080), whole.Affinity("UDP", 30053)
		of := map[netip.Addr]int{}
		for _, client := range clients(six) {
			to, shown := stays.Endpoint(client, fixedSlots{})
			if !shown || to.Port() != 8080 || to.Addr().Is6() != six {
				t.Fatalf("%s: %s, %v", client, to, shown)
			}
			of[to.Addr()]++
			if dns, _ := names.Endpoint(client, fixedSlots{}); dns != netip.AddrPortFrom(to.Addr(), 5353) {
				t.Errorf("%s is with %s on one port, with %s on the other", client, to, dns)
			}
		}
		for _, p := range all {
			if n := of[p.Addresses[map[bool]int{true: 1}[six]]]; n < 50 {
				t.Errorf("%s has %d of 500 clients", p.Name, n)
			}
		}
		for i, p := range all {
			rest := sticky(unready(i)...)
			left := rest.Affinity("TCP", 30080)
			for _, client := range clients(six) {
				was, _ := stays.Endpoint(client, fixedSlots{})
				is, _ := left.Endpoint(client, fixedSlots{})
				gone := was.Addr() == p.Addresses[0] || was.Addr() == p.Addresses[1]
				if gone == (was == is) {
					t.Errorf("%s goes: %s moves from %s to %s", p.Name, client, was, is)
				}
			}
		}
	}
}

// Both spellings of an address are equal, and a port that is not a node port has no endpoint.
func TestAffinityEndpoint(t *testing.T) {
	d := sticky(aPod("a", 2), aPod("b", 3), aPod("c", 4, func(p *Pod) { p.UserSpaceStack = true }))
	stays := d.Affinity("TCP", 30080)
	for _, client := range clients(false) {
		to, shown := stays.Endpoint(client, fixedSlots{})
		if mapped, _ := stays.Endpoint(netip.AddrFrom16(client.As16()), fixedSlots{}); mapped != to {
			t.Errorf("%s: %s, and %s mapped", client, to, mapped)
		}
		if shown == (to.Addr() == d.Pods[2].Addresses[0]) {
			t.Errorf("%s sees a client: %v", to, shown)
		}
	}
	link := netip.MustParseAddr("fe80::9")
	if a, _ := stays.Endpoint(link, fixedSlots{}); a.IsValid() {
		if b, _ := stays.Endpoint(link.WithZone("eth0"), fixedSlots{}); a != b {
			t.Errorf("on its link %s, else %s", b, a)
		}
	} else {
		t.Error("an address of the link has no pod")
	}
	for i := range d.Pods { // a kernel without IPv6
		d.Pods[i].Addresses = d.Pods[i].Addresses[:1]
	}
	four := d.Affinity("TCP", 30080)
	if to, _ := four.Endpoint(netip.MustParseAddr("2001:db8::1"), fixedSlots{}); !to.Addr().Is4() {
		t.Errorf("pods with IPv4 alone: %s", to)
	}
	nobody := sticky()
	for name, s := range map[string]Affinity{"no such port": d.Affinity("TCP", 30081), "another protocol": d.Affinity("UDP", 30080), "none": d.Affinity("TCP", 0), "no pods": nobody.Affinity("TCP", 30080), "zero": {}} {
		if to, _ := s.Endpoint(netip.MustParseAddr("192.0.2.1"), fixedSlots{}); to.IsValid() {
			t.Errorf("%s: %s", name, to)
		}
	}
}

// A client of a node port reaches the same pod as through the Service's address.
func TestNodePortAffinityMatchesService(t *testing.T) {
	testenv.NoLeaks(t)
	var pods []Pod
	for i := range 8 {
		pods = append(pods, aPod(string(rune('a'+i)), i+2))
	}
	n := newTestbed(t, pods...)
	for _, p := range pods {
		n.serve(p.Name, "TCP", 8080)
	}
	d := sticky(pods...)
	n.apply(d)
	stays := d.Affinity("TCP", 30080)
	known := NewClients(n.RouterNS)
	for turn, p := range pods {
		for i, address := range []string{"10.88.128.1:80", "[fd88::8001]:80"} {
			var to netip.AddrPort
			if turn%2 == 0 { // by the port of the machine first
				to, _ = stays.Endpoint(p.Addresses[i], known)
			}
			answer, err := n.ask(p.Name, "TCP", address)
			if err != nil {
				t.Fatal(err)
			}
			if turn%2 == 1 {
				to, _ = stays.Endpoint(p.Addresses[i], known)
			}
			is := slices.IndexFunc(pods, func(p Pod) bool { return p.Addresses[i] == to.Addr() })
			if is < 0 || answer[:1] != pods[is].Name {
				t.Errorf("the kernel leads %s to %s, a port of the machine to %s", p.Addresses[i], answer, to)
			}
		}
	}
}

// A client that has not connected for the timeout gets another pod sooner or later, by the address and by a port of the
// machine.
func TestAffinityTimeout(t *testing.T) {
	testenv.NoLeaks(t)
	client, a, b := aPod("client", 9, func(p *Pod) { p.Labels = nil }), aPod("a", 2), aPod("b", 3)
	n := newTestbed(t, client, a, b)
	for _, p := range []string{"a", "b"} {
		n.serve(p, "TCP", 8080)
	}
	d := sticky(client, a, b)
	const timeout = 100 * time.Millisecond
	d.Services[0].Affinity = timeout
	n.apply(d)
	stays, known := d.Affinity("TCP", 30080), NewClients(n.RouterNS)
	for name, ask := range map[string]func() string{
		"address": func() string {
			answer, err := n.ask("client", "TCP", "10.88.128.1:80")
			if err != nil {
				t.Fatal(err)
			}
			return answer[:1]
		},
		"IPv6 address": func() string {
			answer, err := n.ask("client", "TCP", "[fd88::8001]:80")
			if err != nil {
				t.Fatal(err)
			}
			return answer[:1]
		},
		"port of the machine": func() string {
			to, _ := stays.Endpoint(netip.MustParseAddr("192.0.2.9"), known)
			return to.String()
		},
	} {
		got := map[string]bool{}
		for began := time.Now(); len(got) < 2; time.Sleep(2 * timeout) {
			if got[ask()] = true; time.Since(began) > time.Minute {
				t.Fatalf("by the %s a client stays with %v", name, got)
			}
		}
	}
}
