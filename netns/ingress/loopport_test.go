package ingress

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/hostport"
)

// Connections count from when they are accepted: one beyond the limit is refused, keepalive detects
// clients that have disappeared, and the end of the server resets all.
func TestAcceptOnTheLoop(t *testing.T) {
	w := newWorld(t)
	nettest.Serve(t, w.pod, ":80", nettest.Echo)
	d := w.dialer(t, false).(*NetnsDialer)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	s.mu.Lock()
	s.limit = 1
	s.mu.Unlock()
	c := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
	must(t, nettest.RoundTrip(c, []byte("x")))
	must(t, d.loop.Do(func() error {
		for near := range s.proxied {
			for name, want := range map[[2]int]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE}: 1, {unix.SOL_TCP, unix.TCP_KEEPIDLE}: 60, {unix.SOL_TCP, unix.TCP_KEEPINTVL}: 30, {unix.SOL_TCP, unix.TCP_KEEPCNT}: 4} {
				if got, err := unix.GetsockoptInt(near, name[0], name[1]); err != nil || got != want {
					t.Errorf("option %v of a client is %d, want %d: %v", name, got, want, err)
				}
			}
		}
		if len(s.proxied) != 1 {
			t.Errorf("%d connections", len(s.proxied))
		}
		return nil
	}))
	other, err := nettest.Dial(w.Remote, "tcp", "10.77.0.1:8080")
	if err == nil { // otherwise the reset came first
		err = nettest.RoundTrip(other, []byte("x"))
		other.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("one too many: %v", err)
	}
	listener := s.ports["8080/tcp"].(*loopPort).listener
	s.Close()
	next, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, listener) // gets the number that the listener had
	must(t, err)
	s.Close()
	if err := unix.Close(next); err != nil {
		t.Errorf("a second Close has closed what is not the server's: %v", err)
	}
	if err := nettest.RoundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after the end of the server: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != 0 || len(s.proxied) != 0 {
		t.Errorf("%d connections are left", s.active)
	}
}

// Without a descriptor for a client it waits until there is one, also if the server pauses
// meanwhile.
func TestWithoutDescriptors(t *testing.T) {
	w := newWorld(t)
	nettest.Serve(t, w.pod, ":80", nettest.Echo)
	d := w.dialer(t, false).(*NetnsDialer)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	p := s.ports["8080/tcp"].(*loopPort)
	for _, pause := range []bool{false, true} {
		must(t, d.loop.Do(func() error { // as accept does
			d.loop.Unwatch(p.listener, false)
			p.retryListen()
			return nil
		}))
		if pause {
			if !s.Pause() {
				t.Fatal("busy")
			}
			s.Resume()
		}
		c := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080")
		must(t, nettest.RoundTrip(c, []byte("x")))
		c.Close()
		nettest.WaitIdle(t, s)
	}
}

// Connections that nobody has accepted when a port is removed are forwarded all the same.
func TestRemoveForwardsWhoWaits(t *testing.T) {
	w := newWorld(t)
	nettest.Serve(t, w.pod, ":80", nettest.Echo)
	d := w.dialer(t, false).(*NetnsDialer)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	p := s.ports["8080/tcp"].(*loopPort)
	must(t, d.loop.Do(func() error { d.loop.Unwatch(p.listener, false); return nil })) // the loop is busy with others
	var waiting []net.Conn
	for range 3 {
		waiting = append(waiting, nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080"))
	}
	delete(s.ports, "8080/tcp")
	p.remove()
	for _, c := range waiting {
		must(t, nettest.RoundTrip(c, []byte("x")))
	}
	if c, err := nettest.Dial(w.Remote, "tcp", "10.77.0.1:8080"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port is still open: %v, %v", c, err)
	}
}
