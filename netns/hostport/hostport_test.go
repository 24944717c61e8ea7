package hostport

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestNames(t *testing.T) {
	for want, p := range map[string]Port{
		"8080/tcp":           {"tcp", netip.Addr{}, 8080},
		"127.0.0.1:8080/tcp": {"tcp", netip.MustParseAddr("127.0.0.1"), 8080},
		"[::1]:53/udp":       {"udp", netip.MustParseAddr("::1"), 53},
	} {
		if p.String() != want {
			t.Errorf("%s, want %s", p, want)
		}
	}
}

func open(t *testing.T, p Port) (*os.File, error) {
	t.Helper()
	f, err := Bind(p)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { f.Close() })
	return f, Listen(f, p)
}

// What a port without an address is: both families; what one with an address leaves to
// others.
func TestAddresses(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	if _, err := open(t, Port{"tcp", netip.Addr{}, 2000}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"127.0.0.1:2000", "[::1]:2000"} {
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			continue
		}
		c.Close()
	}
	taken := []Port{
		{"tcp", netip.Addr{}, 2000},
		{"tcp", netip.MustParseAddr("127.0.0.1"), 2000},
		{"tcp", netip.MustParseAddr("0.0.0.0"), 2000},
		{"tcp", netip.MustParseAddr("::"), 2000},
	}
	for _, p := range taken {
		if _, err := open(t, p); err == nil || !strings.Contains(err.Error(), p.String()) || report.Hint(err) == "" {
			t.Errorf("%s a second time: %v", p, err)
		}
	}
	free := []Port{
		{"udp", netip.Addr{}, 2000},
		{"tcp", netip.MustParseAddr("0.0.0.0"), 2001},
		{"tcp", netip.MustParseAddr("::"), 2001},
		{"tcp", netip.MustParseAddr("127.0.0.1"), 2002},
		{"tcp", netip.MustParseAddr("127.0.0.2"), 2002},
		{"udp", netip.MustParseAddr("127.0.0.1"), 2001},
		{"udp", netip.MustParseAddr("::1"), 2001},
	}
	for _, p := range free {
		if _, err := open(t, p); err != nil {
			t.Error(err)
		}
	}
	if _, err := open(t, Port{"udp", netip.Addr{}, 2000}); err == nil {
		t.Error("a port of UDP is shared")
	}
}

// What is only bound is the caller's, and refuses connections.
func TestBoundOnly(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	p := Port{"tcp", netip.Addr{}, 2000}
	f, err := Bind(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c, err := net.Dial("tcp", "127.0.0.1:2000"); err == nil {
		c.Close()
		t.Error("it is listened to")
	}
	if l, err := net.Listen("tcp", "127.0.0.1:2001"); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
}

// The errors name the port and the cure.
func TestRefusals(t *testing.T) {
	testenv.NoLeaks(t)
	none := Port{"tcp", netip.MustParseAddr("192.0.2.1"), 2000}
	if _, err := open(t, none); err == nil || !strings.Contains(err.Error(), "no address 192.0.2.1") {
		t.Errorf("%v", err)
	}
	// The test is root of its network, and may open all ports.
	low := refusal(Port{"tcp", netip.Addr{}, 80}, unix.EACCES)
	if !strings.Contains(low.Error(), "80/tcp") || !strings.Contains(report.Hint(low), "ip_unprivileged_port_start=80") {
		t.Errorf("%v; %s", low, report.Hint(low))
	}
}
