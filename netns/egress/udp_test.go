package egress

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/router"
)

// Datagrams of any size pass in both directions, in both families.
func TestUDP(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for _, address := range []string{nettest.RemoteAddr + ":53", "[" + nettest.RemoteAddr6 + "]:53"} {
		nettest.ServePacket(t, w.Remote, address, nettest.EchoPacket)
		c := nettest.Connect(t, p.ns, "udp", address)
		for _, size := range []int{0, 1, 1472, 1473, 9000, 40000, 65000, 65507 - 20} {
			want := bytes.Repeat([]byte{byte(size)}, size)
			if _, err := c.Write(want); err != nil {
				t.Errorf("%s: %d bytes: %v", address, size, err)
				continue
			}
			got := make([]byte, 1<<16)
			n, err := c.Read(got)
			if err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("%s: of %d bytes %d came back: %v", address, size, n, err)
			}
		}
		c.Close()
	}
}

// If nothing listens, or there is no route, the pod gets the same error as on the host.
func TestUDPRefusals(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for to, want := range map[string]error{
		nettest.RemoteAddr + ":54":                  unix.ECONNREFUSED,
		"[" + nettest.RemoteAddr6 + "]:54":          unix.ECONNREFUSED,
		"192.0.2.1:53":                              unix.ENETUNREACH,
		"[2001:db8::1]:53":                          unix.ENETUNREACH,
		w.Pool.Gateway().V4.String() + ":53":        unix.ECONNREFUSED, // there is no resolver
		"[" + w.Pool.Gateway().V6.String() + "]:53": unix.ECONNREFUSED,
	} {
		c := nettest.Connect(t, p.ns, "udp", to)
		if err := unix.SetsockoptInt(fdOf(t, c), unix.SOL_IP, unix.IP_RECVERR, 1); err != nil {
			t.Fatal(err)
		}
		unix.SetsockoptInt(fdOf(t, c), unix.SOL_IPV6, unix.IPV6_RECVERR, 1)
		_, err := c.Write([]byte("word"))
		if err == nil {
			_, err = c.Read(make([]byte, 10))
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", to, err, want)
		}
		c.Close()
	}
}

func fdOf(t *testing.T, c net.Conn) (number int) {
	t.Helper()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// names is a resolver that answers with the client.
type names struct{}

func (names) Answer(query []byte) []byte { return append([]byte("answer to "), query...) }

func (names) ServeConn(c net.Conn) {
	defer c.Close()
	b := make([]byte, 100)
	n, _ := c.Read(b)
	c.Write(append([]byte("answer to "), b[:n]...))
}

// The resolver serves the gateway's port 53 and no other.
func TestNames(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1, func(c *Config) { c.Names = names{} })
	g := w.Pool.Gateway()
	for _, network := range []string{"udp", "tcp"} {
		for _, address := range []string{g.V4.String() + ":53", "[" + g.V6.String() + "]:53"} {
			c, err := nettest.Dial(p.ns, network, address)
			if err != nil {
				t.Errorf("%s %s: %v", network, address, err)
				continue
			}
			c.Write([]byte("a query"))
			b := make([]byte, 100)
			if n, err := c.Read(b); err != nil || string(b[:n]) != "answer to a query" {
				t.Errorf("%s %s: %q, %v", network, address, b[:n], err)
			}
			c.Close()
		}
	}
	for _, port := range []int{54, 12001} {
		if c, err := nettest.DialFrom(p.ns, "tcp", "", netipPort(g.V4, port).String(), 300*time.Millisecond); err == nil {
			t.Errorf("the gateway's port %d is open", port)
			c.Close()
		}
	}
	nettest.WaitIdle(t, p.egress)
}

// A pod may send echo requests if the host permits them to its user; otherwise it gets an error.
func TestEcho(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{nettest.RemoteAddr, nettest.RemoteAddr6, p.Pool.Gateway().V4.String()} {
		if err := ping(p.ns, to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("1 0"), 0); err != nil {
		t.Fatal(err)
	}
	if err := ping(p.ns, nettest.RemoteAddr); !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EACCES) {
		t.Errorf("without permission: %v", err)
	}
	nettest.WaitIdle(t, p.egress)
}

// ping sends one echo request from a namespace and waits for its answer.
func ping(ns, to string) error {
	addr := netipPort(mustAddr(to), 0)
	family, protocol, kind, answer := unix.AF_INET, unix.IPPROTO_ICMP, byte(8), byte(0)
	if addr.Addr().Is6() {
		family, protocol, kind, answer = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, 129
	}
	return nsthread.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
			return err
		}
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1)
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 3})
		if err := unix.Sendto(fd, []byte{kind, 0, 0, 0, 0, 0, 0, 7, 'w', 'o', 'r', 'd'}, 0, rawsys.Sockaddr(addr)); err != nil {
			return err
		}
		b := make([]byte, 100)
		n, _, err := unix.Recvfrom(fd, b, 0)
		if err == nil && (n != 12 || b[0] != answer || string(b[6:12]) != "\x00\x07word") {
			err = fmt.Errorf("the answer is % x", b[:n])
		}
		return err
	}, ns)
}

// An idle pod causes no traffic: the router itself does not wake a hibernating supervisor.
func TestSilence(t *testing.T) {
	w := newTestbed(t)
	ns, traffic := w.NewPodWithTraffic(t, 1)
	c := nettest.Connect(t, ns, "udp", nettest.RemoteAddr+":53") // resolve the neighbours first
	c.Write([]byte("word"))
	tun := traffic[router.TrafficTUN]
	tun.SetReadDeadline(time.Now().Add(4 * time.Second))
	b := make([]byte, 1<<16)
	if n, err := tun.Read(b); !os.IsTimeout(err) {
		t.Errorf("a packet came: % x, %v", b[:n], err)
	}
}
