package egress

import (
	"math/rand"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// No spelling of an address leads a pod to a loopback.
func TestTarget(t *testing.T) {
	for to, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1",
		"10.77.0.1":            "10.77.0.1",
		"2001:db8::1":          "2001:db8::1",
		"::ffff:192.0.2.1":     "192.0.2.1",
		"127.0.0.1":            "",
		"127.255.0.9":          "",
		"0.0.0.0":              "",
		"0.1.2.3":              "",
		"224.0.0.1":            "",
		"240.0.0.1":            "",
		"255.255.255.255":      "",
		"169.254.1.2":          "",
		"::1":                  "",
		"::":                   "",
		"::127.0.0.1":          "",
		"::ffff:127.0.0.1":     "",
		"::ffff:0.0.0.0":       "",
		"fe80::1":              "",
		"ff02::1":              "",
		"fd88:0:0:ffff::2":     "",
		"64:ff9b::7f00:1":      "64:ff9b::7f00:1", // a translator would be another host
		"fd88:0:0:ffff::3":     "fd88:0:0:ffff::3",
		"169.254.169.254":      "169.254.169.254",
		"::ffff:169.254.1.2":   "",
		"::ffff:224.0.0.1":     "",
		"::ffff:255.255.255.1": "",
	} {
		var e Proxy
		got, ok := e.hostTarget("TCP", netip.AddrPortFrom(netip.MustParseAddr(to), 80))
		if ok != (want != "") || ok && got.Addr().String() != want {
			t.Errorf("%s: %v, %v; want %q", to, got, ok, want)
		}
	}
	e := Proxy{config: Config{HostLoopback: true}}
	for to, want := range map[netip.Addr]string{ipam.HostLoopback.V4: "127.0.0.1:80", ipam.HostLoopback.V6: "[::1]:80", netip.MustParseAddr("127.0.0.1"): ""} {
		if got, ok := e.hostTarget("TCP", netip.AddrPortFrom(to, 80)); ok != (want != "") || ok && got.String() != want {
			t.Errorf("where it is allowed: %s: %v, %v; want %q", to, got, ok, want)
		}
	}
}

// Malformed packets are dropped and end nothing.
func TestRubbish(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	b := make([]byte, 120)
	for range 200000 {
		r.Read(b)
		b[0] = byte(4+2*r.Intn(2))<<4 | b[0]&15
		p, ok := parse(b[:r.Intn(len(b))])
		if !ok {
			continue
		}
		if f, ok := p.isSYN(); ok {
			tcpReset(p)
			p.sequence()
			udpPacket(f)
		}
		if p.isEchoRequest() {
			echoReply(p.clone(), make([]byte, 8))
		}
		icmpUnreachable(p, p.dst, noRoute)
	}
}

// With few descriptors a pod may have few connections, but at least some.
func TestDescriptorLimit(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[uint64]int64{64: 16, 1024: 192, min(was.Max, 1<<19): min(maxFlows, (int64(min(was.Max, 1<<19))-reserve)/perFlow)} {
		testenv.WithDescriptors(t, limit, func() {
			if got := descriptorLimit(); got != want {
				t.Errorf("%d descriptors: %d, want %d", limit, got, want)
			}
		})
	}
}
