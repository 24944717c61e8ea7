package ingress

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
	"github.com/podrun/podrun/netns/hostport"
)

// greeter holds a connection until its client ends it.
type greeter struct{}

func (greeter) Forward(_ context.Context, client *net.TCPConn, _ netip.AddrPort, _ int) {
	client.Write([]byte("x"))
	io.Copy(io.Discard, client)
	client.Close()
}

func (greeter) DialUDP(netip.AddrPort, int) (net.Conn, error) { return nil, syscall.ECONNREFUSED }

// Clients are untrusted: those beyond the limit are refused and hold no resources.
func TestTooManyClients(t *testing.T) {
	w := newWorld(t)
	s := w.publish(t, greeter{}, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	if s.limit < 16 || s.limit > maxActive {
		t.Errorf("%d connections at most", s.limit)
	}
	s.mu.Lock()
	s.limit = 2
	s.mu.Unlock()
	ask := func() (net.Conn, error) {
		c, err := nettest.Dial(w.Remote, "tcp", "10.77.0.1:8080")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(time.Minute))
		_, err = c.Read(make([]byte, 1))
		return c, err
	}
	first, err := ask()
	must(t, err)
	_, err = ask()
	must(t, err)
	if _, err := ask(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("one too many: %v", err)
	}
	first.(*net.TCPConn).CloseWrite()
	first.Read(make([]byte, 1)) // until the server has ended it
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err = ask(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after one has ended: %v", err)
		}
	}
}
