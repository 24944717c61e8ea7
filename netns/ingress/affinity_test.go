package ingress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whichever server accepts a client's connection, the client's pod answers and sees its address.
func TestAffinity(t *testing.T) {
	s := newAffinityBed(t)
	clients := s.join(8)
	s.open(0, s.pods[0].inside)
	s.open(1, s.pods[1].inside)
	used := map[string]bool{} // a datagram from the same port belongs to the same flow, which moves later: TestFlowsMove
	expect := func(reason string, to func(client netip.Addr) int) {
		t.Helper()
		for _, client := range clients {
			for _, network := range []string{"tcp", "udp"} {
				for range 8 { // the kernel gives each server some of them
					c := s.dial(network, client)
					for used[network+c.LocalAddr().String()] {
						c.Close()
						c = s.dial(network, client)
					}
					used[network+c.LocalAddr().String()] = true
					pod, as := s.reply(c)
					c.Close()
					if local := netip.MustParseAddrPort(c.LocalAddr().String()); pod != to(client) || as != local {
						t.Fatalf("%s: %s %s comes to pod %d as %s, want %d", reason, network, local, pod, as, to(client))
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

// A flow of datagrams moves with its client: when the client's pod has gone, and when the server
// that receives them has.
func TestFlowsMove(t *testing.T) {
	s := newAffinityBed(t)
	clients := s.join(8)
	s.open(0, s.pods[0].inside)
	s.open(1, s.pods[1].inside)
	var flows []net.Conn
	for _, client := range clients {
		flows = append(flows, s.dial("udp", client))
	}
	until := func(reason string, to func(client netip.Addr) int) {
		t.Helper()
		for i, c := range flows {
			for deadline := time.Now().Add(time.Minute); ; {
				pod, as := s.reply(c)
				if as.Addr() != clients[i] {
					t.Fatalf("%s: %s is seen as %s", reason, clients[i], as)
				}
				if pod == to(clients[i]) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: %s stays with pod %d", reason, clients[i], pod)
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
	s.idle(0)
}

// When a port closes, its flows end, both the server's own and those to other pods: the same client
// is served when the port opens again, and until then the server is idle.
func TestFlowsEndWithTheirPort(t *testing.T) {
	s := newAffinityBed(t)
	clients := s.join(2)
	s.open(0, s.pods[0].inside)
	var flows []net.Conn
	for _, client := range clients {
		flows = append(flows, s.dial("udp", client))
	}
	for range 3 {
		for i, c := range flows {
			if pod, as := s.reply(c); pod != s.of[clients[i]] || as.String() != c.LocalAddr().String() {
				t.Errorf("%s comes to pod %d as %s", c.LocalAddr(), pod, as)
			}
		}
		s.pods[0].server.Remove(s.pods[0].files["udp"])
		s.idle(0)
		s.share(0, "udp")
	}
}

// A datagram received while its port closes starts no flow, which nothing would end.
func TestClosedPortStartsNoFlow(t *testing.T) {
	p := &udpPort{server: New(greeter{}), conn: &net.UDPConn{}, flows: map[clientRoute]*udpFlow{}}
	p.close()
	if f, err := p.flowFor(clientRoute{}); f != nil || err != nil { // greeter would refuse it
		t.Errorf("%v, %v", f, err)
	}
}

// If a pod disappears without closing, another pod's server that carries a connection to it detects
// that.
func TestAffinityPodIsGone(t *testing.T) {
	s := newAffinityBed(t)
	inside := s.pods[0].inside
	for i, p := range s.pods {
		var alive, idle int
		must(t, inside.loop.Do(func() error {
			fd, err := inside.connect(unix.SOCK_STREAM, netip.AddrPort{}, netip.AddrPortFrom(p.addrs[0], 80), false)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if alive, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE); err == nil {
				idle, err = unix.GetsockoptInt(fd, unix.SOL_TCP, unix.TCP_KEEPIDLE)
			}
			return err
		}))
		if other := i != 0; (alive != 0) != other || (time.Duration(idle)*time.Second == keepalive.Idle) != other {
			t.Errorf("pod %d: keepalive %d, after %d s", i, alive, idle)
		}
	}
}

// A server that reaches its own pod in another way leads clients of other pods through the router
// too; a pod with a user-space stack sees the router's address.
func TestAffinityToOwnPod(t *testing.T) {
	s := newAffinityBed(t)
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
			if pod, as := s.reply(c); pod != 1 || as.String() != c.LocalAddr().String() {
				t.Errorf("%s %s comes to pod %d as %s", network, client, pod, as)
			}
		}
	}
	s.mu.Lock()
	s.hidden = true
	s.mu.Unlock()
	for _, client := range clients {
		if s.of[client] == 1 {
			gateway := map[bool]string{true: gatewayAddr, false: gatewayAddr6}[client.Is4()]
			if pod, as := s.reply(s.dial("tcp", client)); pod != 1 || as.Addr().String() != gateway {
				t.Errorf("%s comes to pod %d as %s", client, pod, as)
			}
		}
	}
	s.hold(1, 81)
	s.mu.Lock()
	s.port = 81
	s.mu.Unlock()
	var held []net.Conn
	for _, client := range clients {
		if s.of[client] == 1 {
			c := s.dial("tcp", client)
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
	}
	s.pods[0].server.Close() // ends a connection that neither side has closed
	for _, c := range held {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%s: %v", c.LocalAddr(), err)
		}
	}
}
