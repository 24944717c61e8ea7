package netstack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/relay"
)

// Each end sees how the other end closed, in both directions: after a half-close it still answers;
// a reset arrives as a reset.
func TestEnds(t *testing.T) {
	ns, addresses, s := newPod(t, nil)
	outside := nettest.Listen(t, nettest.HostNetNS, nettest.HostAddr+":5304")
	inside := nettest.Listen(t, ns, addresses.V4.String()+":5305")
	accept := func(l net.Listener) *net.TCPConn {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(time.Minute))
		return c.(*net.TCPConn)
	}
	out := func() (client, server *net.TCPConn) {
		client = nettest.Connect(t, ns, "tcp", nettest.HostAddr+":5304").(*net.TCPConn)
		return client, accept(outside)
	}
	in := func() (client, server *net.TCPConn) {
		client = nettest.Connect(t, nettest.HostNetNS, "tcp", nettest.HostAddr+":5304").(*net.TCPConn)
		go s.Forward(context.Background(), accept(outside), netip.MustParseAddrPort("203.0.113.7:0"), 5305)
		return client, accept(inside)
	}
	for name, connect := range map[string]func() (client, server *net.TCPConn){"out": out, "in": in} {
		t.Run(name, func(t *testing.T) {
			client, server := connect()
			halfClosed(t, client, server)
			client, server = connect()
			halfClosed(t, server, client)
			client, server = connect()
			reset(t, client, server)
			client, server = connect()
			reset(t, server, client)
			nettest.WaitIdle(t, s)
		})
	}
}

// halfClosed sends and half-closes at one end and then answers at the other.
func halfClosed(t *testing.T, one, other *net.TCPConn) {
	t.Helper()
	io.WriteString(one, "question")
	one.CloseWrite()
	if b, err := io.ReadAll(other); err != nil || string(b) != "question" {
		t.Errorf("%q, %v", b, err)
	}
	io.WriteString(other, "answer")
	other.Close()
	if b, err := io.ReadAll(one); err != nil || string(b) != "answer" {
		t.Errorf("%q, %v", b, err)
	}
	one.Close()
}

// reset resets one end of a connection that both ends have used.
func reset(t *testing.T, one, other *net.TCPConn) {
	t.Helper()
	b := make([]byte, 1)
	for _, pair := range [][2]*net.TCPConn{{one, other}, {other, one}} {
		pair[0].Write(b)
		if _, err := io.ReadFull(pair[1], b); err != nil {
			t.Fatal(err)
		}
	}
	relay.Reset(one)
	if _, err := other.Read(b); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the other end sees %v", err)
	}
	other.Close()
}
