package egress

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// BenchmarkConnect measures what a pod's network adds to its start and to its end.
func BenchmarkConnect(b *testing.B) {
	w := newTestbed(b)
	ns := testenv.NewNamespaces(b, unix.CLONE_NEWNET) + "/ns/net"
	for b.Loop() {
		if err := w.Router.Attach(ns, w.Pool, 1); err != nil {
			b.Fatal(err)
		}
		traffic, err := w.Router.OpenTraffic(w.Pool, 1)
		if err != nil {
			b.Fatal(err)
		}
		e, err := Start(Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: 1}, traffic)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		e.Close()
		if err := w.Router.Detach(1); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// stream measures the throughput of a connection from a namespace to a server in another.
func stream(b *testing.B, from, in string, address netip.AddrPort) {
	nettest.Serve(b, in, address.String(), func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	c := nettest.Connect(b, from, "tcp", address.String())
	chunk := make([]byte, 128<<10)
	b.SetBytes(int64(len(chunk)))
	c.SetDeadline(time.Time{})
	for b.Loop() {
		if _, err := c.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream measures a plain veth pair, pod to pod, and outgoing traffic.
func BenchmarkStream(b *testing.B) {
	w := newTestbed(b)
	one, other := w.pod(1), w.pod(2)
	remote := netip.MustParseAddrPort(nettest.RemoteAddr + ":80")
	b.Run("veth", func(b *testing.B) { stream(b, nettest.HostNetNS, w.Remote, remote) })
	b.Run("pod", func(b *testing.B) { stream(b, one.ns, other.ns, netip.AddrPortFrom(other.own.V4, 80)) })
	b.Run("pod6", func(b *testing.B) { stream(b, one.ns, other.ns, netip.AddrPortFrom(other.own.V6, 80)) })
	b.Run("out", func(b *testing.B) { stream(b, one.ns, w.Remote, remote) })
}

// BenchmarkStreamBack measures what a server in another network sends to the pod.
func BenchmarkStreamBack(b *testing.B) {
	w := newTestbed(b)
	one := w.pod(1)
	nettest.Serve(b, w.Remote, nettest.RemoteAddr+":80", func(c *net.TCPConn) {
		for chunk := make([]byte, 128<<10); ; {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	})
	for name, ns := range map[string]string{"veth": nettest.HostNetNS, "out": one.ns} {
		b.Run(name, func(b *testing.B) {
			c := nettest.Connect(b, ns, "tcp", nettest.RemoteAddr+":80")
			c.SetDeadline(time.Time{})
			chunk := make([]byte, 128<<10)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := io.ReadFull(c, chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// turns measures a round trip of one byte.
func turns(b *testing.B, from, in string, address netip.AddrPort) {
	nettest.Serve(b, in, address.String(), nettest.Echo)
	c := nettest.Connect(b, from, "tcp", address.String())
	c.SetDeadline(time.Time{})
	buf := make([]byte, 1)
	for b.Loop() {
		c.Write(buf)
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	w := newTestbed(b)
	one, other := w.pod(1), w.pod(2)
	remote := netip.MustParseAddrPort(nettest.RemoteAddr + ":80")
	b.Run("veth", func(b *testing.B) { turns(b, nettest.HostNetNS, w.Remote, remote) })
	b.Run("pod", func(b *testing.B) { turns(b, one.ns, other.ns, netip.AddrPortFrom(other.own.V4, 80)) })
	b.Run("out", func(b *testing.B) { turns(b, one.ns, w.Remote, remote) })
}

// BenchmarkConnection measures whole connections, one after the other.
func BenchmarkConnection(b *testing.B) {
	w := newTestbed(b)
	pod := w.pod(1)
	nettest.Serve(b, w.Remote, nettest.RemoteAddr+":80", func(c *net.TCPConn) { c.Write([]byte("x")) })
	for name, ns := range map[string]string{"veth": nettest.HostNetNS, "out": pod.ns} {
		b.Run(name, func(b *testing.B) {
			nettest.Do(b, ns, func() error {
				for b.Loop() {
					c, err := nettest.DialHere("tcp", nettest.RemoteAddr+":80")
					if err != nil {
						return err
					}
					_, err = io.ReadAll(c)
					c.Close()
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// BenchmarkAmongOthers measures a round trip from pod to pod, and one that goes out, with many
// other pods.
func BenchmarkAmongOthers(b *testing.B) {
	w := newTestbed(b)
	one, other := w.pod(1), w.pod(2)
	remote := netip.MustParseAddrPort(nettest.RemoteAddr + ":80")
	for n, have := range []int{2, 102, 302} {
		for s := []int{2, 2, 102}[n] + 1; s <= have; s++ {
			w.NewPodWithTraffic(b, ipam.Slot(s))
		}
		b.Run(fmt.Sprintf("%d/pod", have), func(b *testing.B) {
			turns(b, one.ns, other.ns, netip.AddrPortFrom(other.own.V4, 80))
		})
		b.Run(fmt.Sprintf("%d/out", have), func(b *testing.B) { turns(b, one.ns, w.Remote, remote) })
	}
}
