package egress

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
)

// A pod sends segments larger than 64 KiB, where the kernel supports them, and all data arrives: at
// another pod, and at a host behind a device without support for them.
func TestBigSegments(t *testing.T) {
	w := newTestbed(t)
	one, other := w.pod(1), w.pod(2)
	if largest(t, one.ns) == 0 {
		t.Log("this kernel has no big segments of IPv4: the rest is tried without")
	} else if n := largest(t, one.ns); n <= 1<<16 || n != largest(t, other.ns) {
		t.Errorf("segments of up to %d bytes", n)
	}
	text := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{}).Read(text)
	for _, c := range []struct{ ns, at string }{{other.ns, other.own.V4.String()}, {other.ns, "[" + other.own.V6.String() + "]"}, {w.Remote, nettest.RemoteAddr}} {
		nettest.Serve(t, c.ns, c.at+":80", func(c *net.TCPConn) {
			all, err := io.ReadAll(c)
			if err == nil {
				c.Write(all)
			}
		})
		conn := nettest.Connect(t, one.ns, "tcp", c.at+":80")
		_, err := conn.Write(text)
		if err == nil {
			err = conn.(*net.TCPConn).CloseWrite()
		}
		got, rerr := io.ReadAll(conn)
		if conn.Close(); err != nil || rerr != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v, %v: %d bytes have come back, not the same", c.at, err, rerr, len(got))
		}
	}
}

// largest returns the largest segment of a pod's device; 0: the kernel does not report it.
func largest(t *testing.T, ns string) (n uint32) {
	t.Helper()
	nettest.Do(t, ns, func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil {
			n = link.Attrs().GSOIPv4MaxSize
		}
		return err
	})
	return n
}

// Streams between a pod and the router have no pacing timer.
func TestReno(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for _, ns := range []string{w.RouterNS, p.ns} {
		err := nsthread.Do(func() error {
			b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
			if got := strings.TrimSpace(string(b)); err == nil && got != "reno" {
				t.Errorf("%s of %s", got, ns)
			}
			return err
		}, ns)
		if err != nil {
			t.Error(err)
		}
	}
}
