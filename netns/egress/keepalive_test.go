package egress

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
)

// Keepalive detects a peer that has disappeared, for every connection that is not short, and for
// one that another connection has replaced.
func TestKeepalive(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", nettest.Echo)
	c := nettest.Connect(t, p.ns, "tcp", nettest.RemoteAddr+":80")
	if err := nettest.RoundTrip(c, []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := p.egress.loop.Do(func() error {
		for _, x := range p.egress.tcp.all {
			if p.egress.expire(time.Now().Add(2 * keepaliveDelay)) {
				t.Error("something is looked after for ever")
			}
			alive, err := unix.GetsockoptInt(x.host, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			if err != nil || alive != 1 || !x.keepalive {
				t.Errorf("nobody asks whether the partner is alive: %d, %v", alive, err)
			}
			idle, err := unix.GetsockoptInt(x.host, unix.SOL_TCP, unix.TCP_KEEPIDLE)
			if err != nil || idle != 300 {
				t.Errorf("it is asked after %d s: %v", idle, err)
			}
		}
		if len(p.egress.tcp.all) != 1 {
			t.Errorf("%d connections", len(p.egress.tcp.all))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	nettest.WaitIdle(t, p.egress)
}
