package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/ipam"
)

// Data arrives at another host and back, in both families.
func TestTCP(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for _, address := range []string{nettest.RemoteAddr + ":80", "[" + nettest.RemoteAddr6 + "]:80"} {
		nettest.Serve(t, w.Remote, address, nettest.Echo)
		c, err := nettest.Dial(p.ns, "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if err := nettest.RoundTrip(c, []byte("word")); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if err := nettest.RoundTrip(c, bytes.Repeat([]byte("stream"), 1<<20)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		c.Close()
	}
}

// What fails on the host fails in the same way in the pod, and at once.
func TestRefusals(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for to, want := range map[string]error{
		nettest.RemoteAddr + ":81":         unix.ECONNREFUSED,
		"[" + nettest.RemoteAddr6 + "]:81": unix.ECONNREFUSED,
		"10.77.0.9:80":                     unix.EHOSTUNREACH, // nobody answers the host's ARP
		"192.0.2.1:80":                     unix.ENETUNREACH,  // no host answers ARP
		"[2001:db8::1]:80":                 unix.ENETUNREACH,
		"127.0.0.2:80":                     unix.ECONNREFUSED, // its own
		"10.88.77.77:80":                   unix.EHOSTUNREACH, // no pod has it
		w.Pool.Addresses(77).V6.String():   nil,
	} {
		if want == nil {
			to, want = "["+to+"]:80", unix.ENETUNREACH // the error of IPv6
		}
		if c, err := nettest.Dial(p.ns, "tcp", to); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", to, err, want)
			if c != nil {
				c.Close()
			}
		}
	}
	nettest.WaitIdle(t, p.egress)
}

// A pod reaches no loopback but its own, however it spells the address.
func TestLoopbackIsOutOfReach(t *testing.T) {
	w := newTestbed(t)
	for _, address := range []string{"127.0.0.1:8000", "[::1]:8000"} {
		nettest.Serve(t, nettest.HostNetNS, address, nettest.Echo)
	}
	for _, allowed := range []bool{false, true} {
		p := w.pod(1+ipam.Slot(bit(allowed)), func(c *Config) { c.HostLoopback = allowed })
		g := w.Pool.Gateway()
		for _, a := range []netip.Addr{
			g.V4, g.V6, netip.MustParseAddr("10.0.2.2"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fe80::1%eth0").WithZone(""),
			netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("::"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("::127.0.0.1"),
			netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), ipam.HostLoopback.V4, ipam.HostLoopback.V6,
			netip.MustParseAddr(nettest.HostAddr), netip.MustParseAddr("10.77.0.255"), netip.MustParseAddr("255.255.255.255"), netip.MustParseAddr("224.0.0.1"),
		} {
			if (a == g.V4 || a == g.V6) && !allowed {
				continue // without an answer
			}
			mapped, within := a == ipam.HostLoopback.V4 || a == ipam.HostLoopback.V6, 300*time.Millisecond
			if mapped && allowed {
				within = time.Minute
			}
			c, err := nettest.DialFrom(p.ns, "tcp", "", netip.AddrPortFrom(a, 8000).String(), within)
			if err == nil {
				err = nettest.RoundTrip(c, []byte("word"))
				c.Close()
			}
			if ok := err == nil; ok != (mapped && allowed) {
				t.Errorf("allowed %v: %s: %v", allowed, a, err)
			}
		}
	}
}

// Half-closes and resets pass through.
func TestHalfCloseAndReset(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	received := make(chan error, 1)
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", func(c *net.TCPConn) {
		b, err := io.ReadAll(c) // to the half-close or the reset
		received <- err
		if err == nil {
			c.Write(append([]byte("heard "), b...))
		}
	})
	c := nettest.Connect(t, p.ns, "tcp", nettest.RemoteAddr+":80")
	c.Write([]byte("all"))
	c.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "heard all" {
		t.Errorf("after a half-close: %q, %v", b, err)
	}
	if err := <-received; err != nil {
		t.Error(err)
	}
	c.Close()
	c = nettest.Connect(t, p.ns, "tcp", nettest.RemoteAddr+":80")
	c.Write([]byte("all"))
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	if err := <-received; !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the server sees %v, want a reset", err)
	}
	nettest.WaitIdle(t, p.egress)
}

// None of many short connections at once fails, and nothing of them remains.
func TestManyConnections(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", func(c *net.TCPConn) { io.ReadFull(c, make([]byte, 1)); c.Write([]byte("x")) })
	all := 10000
	if testing.Short() {
		all = 500
	}
	var group sync.WaitGroup
	var failed atomic.Int32
	for range 20 {
		group.Go(func() {
			err := nsthread.Do(func() error {
				for range all / 20 {
					c, err := nettest.DialHere("tcp", nettest.RemoteAddr+":80")
					if err != nil {
						return err
					}
					err = nettest.RoundTrip(c, []byte("x"))
					c.Close()
					if err != nil {
						return err
					}
				}
				return nil
			}, p.ns)
			if err != nil && failed.Add(1) == 1 {
				t.Error(err)
			}
		})
	}
	group.Wait()
	nettest.WaitIdle(t, p.egress)
}

// Pods reach each other through the kernel alone, with their own addresses and no others.
func TestPodToPod(t *testing.T) {
	w := newTestbed(t)
	a, b := w.pod(1), w.pod(300)
	for _, address := range []netip.Addr{b.own.V4, b.own.V6} {
		l := nettest.Serve(t, b.ns, netip.AddrPortFrom(address, 80).String(), func(c *net.TCPConn) { io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().String()) })
		c, err := nettest.Dial(a.ns, "tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			continue
		}
		if who, err := io.ReadAll(c); err != nil || string(who) != a.own.V4.String() && string(who) != a.own.V6.String() {
			t.Errorf("%s: the client is %q, %v", address, who, err)
		}
		c.Close()
	}
	if n := a.egress.flows.Load(); n != 0 {
		t.Errorf("%d flows went through the process", n)
	}
}

// Sweep removes what a pod without Detach has left in the router and keeps what belongs to others.
func TestSweep(t *testing.T) {
	w := newTestbed(t)
	gone, stays := w.pod(1), w.pod(2)
	gone.egress.Close()
	if err := w.Router.Sweep(map[ipam.Slot]bool{2: true}); err != nil {
		t.Fatal(err)
	}
	err := w.Router.Do(func() error {
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			rules, err := netlink.RuleList(family)
			if err != nil {
				return err
			}
			of := 0
			for _, r := range rules {
				if r.IifName == "p1" {
					t.Errorf("rule %v is left", r)
				}
				if r.IifName == "p2" {
					of++
				}
			}
			if of != 1 {
				t.Errorf("the living pod has %d rules", of)
			}
		}
		c, err := nftables.New()
		if err != nil {
			return err
		}
		tables, err := c.ListTables()
		if len(tables) != 1 || !strings.HasPrefix(tables[0].Name, "pod2.") {
			t.Errorf("tables %+v", tables)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", nettest.Echo)
	nettest.Connect(t, stays.ns, "tcp", nettest.RemoteAddr+":80")
	again := w.pod(1) // the slot is free
	nettest.Connect(t, again.ns, "tcp", nettest.RemoteAddr+":80")
}

// The sysctls of the host's network, which a new network inherits, do not keep a pod from its
// gateway.
func TestHostsSettings(t *testing.T) {
	w := newTestbed(t)
	err := w.Router.Do(func() error {
		for _, name := range []string{"arp_ignore", "arp_announce", "arp_filter", "route_localnet"} {
			for _, of := range []string{"all", "default"} {
				b, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + of + "/" + name)
				if err != nil || strings.TrimSpace(string(b)) != "0" {
					t.Errorf("%s.%s is %q, %v", of, name, b, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
