package hostport

import (
	"errors"
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
		"8080/tcp":           {Protocol: "tcp", Number: 8080},
		"127.0.0.1:8080/tcp": {Protocol: "tcp", Addr: netip.MustParseAddr("127.0.0.1"), Number: 8080},
		"[::1]:53/udp":       {Protocol: "udp", Addr: netip.MustParseAddr("::1"), Number: 53},
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

// A port without an address serves both families; a port with an address leaves the other addresses
// free.
func TestAddresses(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	if _, err := open(t, Port{Protocol: "tcp", Number: 2000}); err != nil {
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
		{Protocol: "tcp", Number: 2000},
		{Protocol: "tcp", Addr: netip.MustParseAddr("127.0.0.1"), Number: 2000},
		{Protocol: "tcp", Addr: netip.MustParseAddr("0.0.0.0"), Number: 2000},
		{Protocol: "tcp", Addr: netip.MustParseAddr("::"), Number: 2000},
	}
	for _, p := range taken {
		if _, err := open(t, p); err == nil || !strings.Contains(err.Error(), p.String()) || report.Hint(err) == "" {
			t.Errorf("%s a second time: %v", p, err)
		}
	}
	free := []Port{
		{Protocol: "udp", Number: 2000},
		{Protocol: "tcp", Addr: netip.MustParseAddr("0.0.0.0"), Number: 2001},
		{Protocol: "tcp", Addr: netip.MustParseAddr("::"), Number: 2001},
		{Protocol: "tcp", Addr: netip.MustParseAddr("127.0.0.1"), Number: 2002},
		{Protocol: "tcp", Addr: netip.MustParseAddr("127.0.0.2"), Number: 2002},
		{Protocol: "udp", Addr: netip.MustParseAddr("127.0.0.1"), Number: 2001},
		{Protocol: "udp", Addr: netip.MustParseAddr("::1"), Number: 2001},
	}
	for _, p := range free {
		if _, err := open(t, p); err != nil {
			t.Error(err)
		}
	}
	if _, err := open(t, Port{Protocol: "udp", Number: 2000}); err == nil {
		t.Error("a port of UDP is shared")
	}
}

// A port that is only bound is reserved and refuses connections.
func TestBoundOnly(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	p := Port{Protocol: "tcp", Number: 2000}
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

// The errors name the port and the hint.
func TestRefusals(t *testing.T) {
	testenv.NoLeaks(t)
	none := Port{Protocol: "tcp", Addr: netip.MustParseAddr("192.0.2.1"), Number: 2000}
	if _, err := open(t, none); err == nil || !strings.Contains(err.Error(), "no address 192.0.2.1") {
		t.Errorf("%v", err)
	}
	// The test is root of its network and may bind all ports.
	low := bindError(Port{Protocol: "tcp", Number: 80}, unix.EACCES)
	if !strings.Contains(low.Error(), "80/tcp") || !strings.Contains(report.Hint(low), "ip_unprivileged_port_start=80") {
		t.Errorf("%v; %s", low, report.Hint(low))
	}
}

// Only ports that are marked as shared can be shared.
func TestShared(t *testing.T) {
	for _, protocol := range []string{"tcp", "udp"} {
		shared := Port{Protocol: protocol, Number: 30001, Shared: true}
		for range 2 {
			if _, err := open(t, shared); err != nil {
				t.Errorf("%s: %v", protocol, err)
			}
		}
		alone := shared
		alone.Shared = false
		if _, err := open(t, alone); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: one that does not share it: %v", protocol, err)
		}
	}
}
