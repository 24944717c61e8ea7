package egress

import (
	"net/netip"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
)

// A connection in which nothing is said for an hour is still one; what nobody has answered,
// or taken, is not kept for so long.
func TestIdleConnection(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", nettest.Echo)
	c := nettest.Connect(t, p.ns, "tcp", nettest.RemoteAddr+":80")
	if err := nettest.RoundTrip(c, []byte("before")); err != nil {
		t.Fatal(err)
	}
	lost := flow{netip.AddrPortFrom(p.own.V4, 1), netip.MustParseAddrPort(nettest.RemoteAddr + ":80")}
	err := p.egress.loop.Do(func() error {
		fd, err := p.egress.dialHost(lost.dst) // of a pod that has forgotten what it asked for
		if err == nil && p.egress.acquireFlow() {
			p.egress.tcp.all[lost] = &tcpConn{host: fd, state: accepting, deadline: time.Now().Add(acceptTimeout)}
		}
		if p.egress.expire(time.Now()); p.egress.tcp.all[lost] == nil {
			t.Error("it is given up at once")
		}
		if p.egress.expire(time.Now().Add(time.Hour)) || p.egress.tcp.all[lost] != nil {
			t.Error("it is kept for an hour")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nettest.RoundTrip(c, []byte("after")); err != nil {
		t.Errorf("after an hour: %v", err)
	}
	c.Close()
	nettest.WaitIdle(t, p.egress)
}

// A conversation in which nothing was said for an hour is none any more, as where the kernel
// translates addresses; the next datagram begins another, at the same sockets of both sides.
func TestIdleSession(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	nettest.ServePacket(t, w.Remote, nettest.RemoteAddr+":53", nettest.EchoPacket)
	c := nettest.Connect(t, p.ns, "udp", nettest.RemoteAddr+":53")
	for _, word := range []string{"before", "after"} {
		if err := nettest.RoundTrip(c, []byte(word)); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		for deadline := time.Now().Add(time.Minute); !p.egress.Pause(); time.Sleep(time.Millisecond) {
			p.anHourPasses() // again for who has just looked how long it may wait
			if time.Now().After(deadline) {
				t.Fatal("it goes on")
			}
		}
		p.egress.Resume()
	}
	x := &udpSession{}
	x.lastUsed.Store(time.Now().Add(-unansweredTimeout - time.Second).Unix())
	if _, over := x.expiry(); !over {
		t.Error("a question that nobody answers is waited for")
	}
	x.answered.Store(true)
	if _, over := x.expiry(); over {
		t.Error("what was answered ends as soon as what was not")
	}
}

// anHourPasses without a datagram.
func (p *testPod) anHourPasses() {
	p.egress.udp.mu.Lock()
	defer p.egress.udp.mu.Unlock()
	for _, x := range p.egress.udp.all {
		x.lastUsed.Store(time.Now().Add(-time.Hour).Unix())
		x.pod.SetReadDeadline(time.Now())
	}
}
