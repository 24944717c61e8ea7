package egress

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
)

// A pod that begins conversations without end has as many as there is room for: the one that
// has been silent for longest makes room for the next.
func TestSessionLimit(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	p.limit(2)
	nettest.ServePacket(t, w.Remote, nettest.RemoteAddr+":53", nettest.EchoPacket)
	for i := range 8 {
		c := nettest.Connect(t, p.ns, "udp", nettest.RemoteAddr+":53")
		var err error
		got := make([]byte, 1)
		for deadline := time.Now().Add(time.Minute); ; {
			c.Write([]byte{byte(i)}) // those that made room are lost, as any may be
			c.SetReadDeadline(time.Now().Add(time.Second / 4))
			if _, err = c.Read(got); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil || got[0] != byte(i) {
			t.Fatalf("conversation %d: %v, %v", i, got, err)
		}
		if n := p.egress.flows.Load(); n > 3 { // one more while it is looked at
			t.Errorf("%d at once", n)
		}
	}
}

// limit is how many flows the pod may have.
func (p *testPod) limit(flows int64) {
	p.egress.reading.Lock()
	defer p.egress.reading.Unlock()
	p.egress.maxFlows = flows
}

// late is how many wait for room.
func (p *testPod) late() (n int) {
	p.egress.loop.Do(func() error { n = len(p.egress.tcp.pending); return nil })
	return n
}

// burst begins connections to who has just answered; none if that has been too long ago.
func (p *testPod) burst(at string, number int) (all []net.Conn) {
	p.t.Helper()
	for range number {
		c, err := nettest.DialFrom(p.ns, "tcp", "", at, 50*time.Millisecond)
		if err != nil {
			closeAll(all)
			return nil
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		all = append(all, c)
	}
	return all
}

func closeAll(all []net.Conn) {
	for _, c := range all {
		c.Close()
	}
}

// tooMany has a pod that may have two flows begin more, and calls then with those that wait, the oldest
// first, and what gives them room.
func tooMany(t *testing.T, number int, then func(p *testPod, waiting []net.Conn, room func())) *testPod {
	t.Helper()
	w := newTestbed(t)
	at := bothFamilies[0]
	nettest.Serve(t, w.Remote, at, nettest.Echo)
	p := w.pod(1)
	nettest.Await(t, "more are taken by the kernel", func() bool {
		p.limit(2)
		active := []net.Conn{nettest.Connect(t, p.ns, "tcp", at), nettest.Connect(t, p.ns, "tcp", at)}
		defer closeAll(active)
		waiting := p.burst(at, number)
		defer closeAll(waiting)
		if waiting == nil {
			p.limit(maxFlows)
			closeAll(active)
			nettest.WaitIdle(t, p.egress)
			return false
		}
		nettest.Await(t, "they wait", func() bool { return p.late() == min(number, maxPending) })
		then(p, waiting, func() { active[0].Close() })
		return true
	})
	return p
}

// What would be too much waits, and is heard when there is room for one.
func TestTooMany(t *testing.T) {
	p := tooMany(t, 2, func(p *testPod, waiting []net.Conn, room func()) {
		room()
		for _, c := range waiting {
			if err := nettest.RoundTrip(c, []byte("word")); err != nil {
				t.Error(err)
			}
			c.Close() // which makes room for the next
		}
	})
	nettest.WaitIdle(t, p.egress)
}

// Who has given up waiting is in nobody's way.
func TestTooManyAreRejected(t *testing.T) {
	p := tooMany(t, 2, func(p *testPod, waiting []net.Conn, _ func()) {
		began := time.Now()
		for _, c := range waiting {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		nettest.Await(t, "they are forgotten", func() bool { return p.late() == 0 })
		if time.Since(began) > acceptTimeout {
			t.Error("they were kept for as long as if they were still there")
		}
	})
	nettest.WaitIdle(t, p.egress)
}

// Those that wait at the end are reset.
func TestTooManyAtTheEnd(t *testing.T) {
	tooMany(t, 1, func(p *testPod, waiting []net.Conn, _ func()) {
		p.egress.Close()
		if _, err := waiting[0].Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	})
}

// Of far too many those are reset that have waited for longest.
func TestManyTooMany(t *testing.T) {
	const more = 4
	p := tooMany(t, maxPending+more, func(p *testPod, waiting []net.Conn, _ func()) {
		for i, c := range waiting[:more] {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("connection %d: %v, want a reset", i, err)
			}
		}
		p.limit(maxFlows)
		for i, c := range waiting[more:] {
			if err := nettest.RoundTrip(c, []byte("word")); err != nil {
				t.Errorf("connection %d: %v", more+i, err)
			}
		}
	})
	nettest.WaitIdle(t, p.egress)
}
