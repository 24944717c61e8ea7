package ingress

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// Whoever takes a client's connection, its own pod answers, and sees who asks.
func TestClientsStayWithTheirPods(t *testing.T) {
	testenv.NoLeaks(t)
	s := newShared(t)
	clients := s.join(8)
	s.open(0, s.pods[0].inside)
	s.open(1, s.pods[1].inside)
	expect := func(why string, to func(client netip.Addr) int) {
		t.Helper()
		for _, client := range clients {
			for _, network := range []string{"tcp", "udp"} {
				for range 8 { // of which the kernel gives some to each server
					c := s.dial(network, client)
					pod, as := s.heard(c)
					c.Close()
					if local := netip.MustParseAddrPort(c.LocalAddr().String()); pod != to(client) || as != local {
						t.Fatalf("%s: %s %s comes to pod %d as %s, want %d", why, network, local, pod, as, to(client))
					}
				}
			}
		}
	}
	of := map[netip.Addr]int{}
	for client, pod := range s.of {
		of[client] = pod
	}
	expect("both are ready", func(client netip.Addr) int { return of[client] })
	s.move(func(netip.Addr) int { return 0 })
	s.shut(1)
	expect("the second is not ready", func(netip.Addr) int { return 0 })
}

// A flow of datagrams moves with its client: when the client's pod has gone, and when the
// server has that takes them.
func TestFlowsMove(t *testing.T) {
	testenv.NoLeaks(t)
	s := newShared(t)
	clients := s.join(8)
	s.open(0, s.pods[0].inside)
	s.open(1, s.pods[1].inside)
	var flows []net.Conn
	for _, client := range clients {
		flows = append(flows, s.dial("udp", client))
	}
	until := func(why string, to func(client netip.Addr) int) {
		t.Helper()
		for i, c := range flows {
			for deadline := time.Now().Add(time.Minute); ; {
				pod, as := s.heard(c)
				if as.Addr() != clients[i] {
					t.Fatalf("%s: %s is seen as %s", why, clients[i], as)
				}
				if pod == to(clients[i]) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: %s stays with pod %d", why, clients[i], pod)
				}
			}
		}
	}
	of := map[netip.Addr]int{}
	for client, pod := range s.of {
		of[client] = pod
	}
	until("both are ready", func(client netip.Addr) int { return of[client] })
	s.move(func(client netip.Addr) int { return 1 - of[client] })
	until("clients have moved", func(client netip.Addr) int { return 1 - of[client] })
	s.move(func(netip.Addr) int { return 1 })
	until("the first has gone", func(netip.Addr) int { return 1 })
	s.shut(0)
	until("its server too", func(netip.Addr) int { return 1 })
	for deadline := time.Now().Add(answered / 2); !s.pods[0].server.Pause(); {
		if time.Now().After(deadline) {
			t.Fatal("flows that nobody can answer any more are open")
		}
	}
	s.pods[0].server.Resume()
}

// A server whose own pod is reached by another way leads the clients of others by the router
// too; a pod that the router's sockets are strangers to sees the router.
func TestAnotherWayToItsOwn(t *testing.T) {
	testenv.NoLeaks(t)
	s := newShared(t)
	clients := s.join(2)
	s.open(0, greeter{})
	for _, client := range clients {
		for _, network := range []string{"tcp", "udp"} {
			if s.of[client] == 0 {
				if network == "tcp" {
					b := make([]byte, 1)
					if n, err := s.dial(network, client).Read(b); err != nil || string(b[:n]) != "x" {
						t.Errorf("%s: %q, %v", client, b[:n], err)
					}
				}
				continue
			}
			c := s.dial(network, client)
			if pod, as := s.heard(c); pod != 1 || as.String() != c.LocalAddr().String() {
				t.Errorf("%s %s comes to pod %d as %s", network, client, pod, as)
			}
		}
	}
	s.mu.Lock()
	s.hidden = true
	s.mu.Unlock()
	for _, client := range clients {
		if s.of[client] == 1 {
			gateway := map[bool]string{true: "10.88.0.1", false: "fd88::1"}[client.Is4()]
			if pod, as := s.heard(s.dial("tcp", client)); pod != 1 || as.Addr().String() != gateway {
				t.Errorf("%s comes to pod %d as %s", client, pod, as)
			}
		}
	}
	for _, client := range clients { // a connection ends with its server, whoever has not closed it
		if s.of[client] == 1 {
			s.heard(s.dial("tcp", client))
		}
	}
	s.pods[0].server.Close()
}
