package ingress

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/hostport"
)

// The pod sees the client's address, with TCP and UDP, over IPv4 and IPv6; a client on the host
// itself appears as the gateway.
func TestClientAddressIsKept(t *testing.T) {
	w := newWorld(t)
	whoServer(t, w.pod, "")
	d := w.dialer(t, false)
	w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	w.publish(t, d, hostport.Port{Protocol: "udp", Number: 8080}, 80)
	for _, c := range []struct{ from, to, want string }{
		{w.Remote, "10.77.0.1:8080", nettest.RemoteAddr},
		{w.Remote, "[fd77::1]:8080", nettest.RemoteAddr6},
		{w.Host, "10.77.0.1:8080", nettest.HostAddr},
		{w.Host, "127.0.0.1:8080", gatewayAddr},
		{w.Host, "[::1]:8080", gatewayAddr6},
	} {
		for _, network := range []string{"tcp", "udp"} {
			conn := nettest.Connect(t, c.from, network, c.to)
			if network == "udp" {
				conn.Write([]byte("?"))
			}
			b := make([]byte, 100)
			n, err := conn.Read(b)
			if err != nil {
				t.Errorf("%s %s: %v", network, c.to, err)
				continue
			}
			client, _, _ := strings.Cut(string(b[:n]), " ")
			got, err := netip.ParseAddrPort(client)
			if err != nil || got.Addr().Unmap().String() != c.want {
				t.Errorf("%s %s: the pod saw %s, want %s (%v)", network, c.to, client, c.want, err)
			}
			if local, _ := netip.ParseAddrPort(conn.LocalAddr().String()); c.from == w.Remote && got.Port() != local.Port() {
				t.Errorf("%s %s: the pod saw port %d, the client's is %d", network, c.to, got.Port(), local.Port())
			}
		}
	}
}

// From inside the pod's own network every client is served too, with an address of the pod.
func TestWithoutARouter(t *testing.T) {
	w := newWorld(t)
	whoServer(t, w.pod, "")
	w.publish(t, w.dialer(t, true), hostport.Port{Protocol: "tcp", Addr: netip.MustParseAddr(nettest.HostAddr), Number: 8080}, 80)
	conn := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(b), podAddr+":") {
		t.Errorf("%s: %v", b, err)
	}
	if c, err := nettest.Dial(w.Host, "tcp", "127.0.0.1:8080"); err == nil {
		c.Close()
		t.Error("a hostIP opens other addresses")
	}
}

// A port without a listener in the pod resets the client, and the server continues.
func TestConnectionRefused(t *testing.T) {
	w := newWorld(t)
	w.publish(t, w.dialer(t, false), hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	conn, err := nettest.Dial(w.Remote, "tcp", "10.77.0.1:8080")
	if err == nil { // otherwise the reset came first
		conn.SetDeadline(time.Now().Add(time.Minute))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v", err)
	}
	whoServer(t, w.pod, "")
	conn = nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), nettest.RemoteAddr) {
		t.Errorf("later: %s: %v", b, err)
	}
}

// Datagrams of every size arrive complete, fragmented or not.
func TestLargeDatagrams(t *testing.T) {
	w := newWorld(t)
	whoServer(t, w.pod, "")
	w.publish(t, w.dialer(t, false), hostport.Port{Protocol: "udp", Number: 8080}, 80)
	for _, to := range []string{"10.77.0.1:8080", "[fd77::1]:8080"} {
		conn := nettest.Connect(t, w.Remote, "udp", to)
		for _, size := range []int{0, 1, 1472, 1473, 9000, 65507} {
			if _, err := conn.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 100)
			n, err := conn.Read(b)
			if want := " " + strconv.Itoa(size); err != nil || !strings.HasSuffix(string(b[:n]), want) {
				t.Errorf("%s, %d bytes: %q: %v", to, size, b[:n], err)
			}
		}
	}
}

// A paused server accepts nothing and loses nothing; it does not pause while it serves a client.
func TestPause(t *testing.T) {
	w := newWorld(t)
	whoServer(t, w.pod, "")
	d := w.dialer(t, false)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	if !s.Pause() {
		t.Fatal("busy from the start")
	}
	conn := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
	conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if b, err := io.ReadAll(conn); err != nil || len(b) == 0 {
		t.Errorf("after the pause: %s: %v", b, err)
	}
	conn.Close()
	held := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
	if _, err := io.ReadAll(held); err != nil { // the server has closed, the client has not
		t.Fatal(err)
	}
	if s.Pause() {
		t.Error("paused while a connection is open")
		s.Resume()
	}
	held.Close()
	nettest.WaitIdle(t, s)
}

// Ten thousand connections, sequential and concurrent.
func TestManyShortConnections(t *testing.T) {
	w := newWorld(t)
	whoServer(t, w.pod, "")
	w.publish(t, w.dialer(t, false), hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	const clients, each = 20, 500
	errs := make(chan error, clients)
	for range clients {
		go func() {
			errs <- nsthread.Do(func() error {
				for range each {
					c, err := net.Dial("tcp", "10.77.0.1:8080")
					if err != nil {
						return err
					}
					b, err := io.ReadAll(c)
					c.Close()
					if err == nil && !strings.HasPrefix(string(b), nettest.RemoteAddr+":") {
						err = errors.New("the pod saw " + string(b))
					}
					if err != nil {
						return err
					}
				}
				return nil
			}, w.Remote)
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
