package egress

import (
	"net/netip"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
)

// A connection that is idle for an hour continues. A connection that was never answered or accepted
// is dropped earlier.
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
		fd, err := p.egress.dialHost(lost.dst) // for a pod that no longer waits for this connection
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

// A UDP session that is idle for an hour ends, as where the kernel translates addresses. The next
// datagram starts another with the same addresses on both sides.
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
			p.anHourPasses() // again, for a goroutine that has just computed its deadline
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

// anHourPasses makes all sessions an hour older.
func (p *testPod) anHourPasses() {
	p.egress.udp.mu.Lock()
	defer p.egress.udp.mu.Unlock()
	for _, x := range p.egress.udp.all {
		x.lastUsed.Store(time.Now().Add(-time.Hour).Unix())
		x.pod.SetReadDeadline(time.Now())
	}
}
