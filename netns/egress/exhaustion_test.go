package egress

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
)

// A pod that starts UDP sessions without end keeps as many as the limit allows: the longest idle
// one makes room for the next.
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
			c.Write([]byte{byte(i)}) // datagrams of closed sessions are lost, as any datagram may be
			c.SetReadDeadline(time.Now().Add(time.Second / 4))
			if _, err = c.Read(got); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil || got[0] != byte(i) {
			t.Fatalf("conversation %d: %v, %v", i, got, err)
		}
		if n := p.egress.flows.Load(); n > 3 { // one more while a datagram is handled
			t.Errorf("%d at once", n)
		}
	}
}

// limit sets the maximum number of the pod's flows.
func (p *testPod) limit(flows int64) {
	p.egress.reading.Lock()
	defer p.egress.reading.Unlock()
	p.egress.maxFlows = flows
}

// late returns the number of connections that wait for room.
func (p *testPod) late() (n int) {
	p.egress.loop.Do(func() error { n = len(p.egress.tcp.pending); return nil })
	return n
}

// burst starts connections to a server that has just answered; none if too much time has passed
// since.
func (p *testPod) burst(address string, number int) (all []net.Conn) {
	p.t.Helper()
	for range number {
		c, err := nettest.DialFrom(p.ns, "tcp", "", address, 50*time.Millisecond)
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

// tooMany makes a pod that may have two flows start more. It calls then with the waiting
// connections, the oldest first, and a function that makes room for one.
func tooMany(t *testing.T, number int, then func(p *testPod, waiting []net.Conn, room func())) *testPod {
	t.Helper()
	w := newTestbed(t)
	address := bothFamilies[0]
	nettest.Serve(t, w.Remote, address, nettest.Echo)
	p := w.pod(1)
	nettest.Await(t, "more are taken by the kernel", func() bool {
		p.limit(2)
		active := []net.Conn{nettest.Connect(t, p.ns, "tcp", address), nettest.Connect(t, p.ns, "tcp", address)}
		defer closeAll(active)
		waiting := p.burst(address, number)
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

// Connections beyond the limit wait and are served when there is room.
func TestTooMany(t *testing.T) {
	p := tooMany(t, 2, func(p *testPod, waiting []net.Conn, room func()) {
		room()
		for _, c := range waiting {
			if err := nettest.RoundTrip(c, []byte("word")); err != nil {
				t.Error(err)
			}
			c.Close() // makes room for the next
		}
	})
	nettest.WaitIdle(t, p.egress)
}

// A client that has given up waiting does not block others.
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

// Connections that still wait at Close are reset.
func TestTooManyAtTheEnd(t *testing.T) {
	tooMany(t, 1, func(p *testPod, waiting []net.Conn, _ func()) {
		p.egress.Close()
		if _, err := waiting[0].Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	})
}

// Of far too many connections those that have waited longest are reset.
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
