package egress

import (
	"net/netip"
	"testing"
	"time"
)

// A connection in which nothing is said for an hour is still one; what nobody has answered,
// or taken, is not kept for so long.
func TestAnHourOfSilence(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	serve(t, listen(t, w.remote, remoteAddr+":80"), echoAll)
	c, err := dial(p.ns, "tcp", remoteAddr+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if err := exchange(c, []byte("before")); err != nil {
		t.Fatal(err)
	}
	lost := flow{netip.AddrPortFrom(p.own.V4, 1), netip.MustParseAddrPort(remoteAddr + ":80")}
	err = p.egress.loop.Do(func() error {
		fd, err := farSide(lost.dst) // of a pod that has forgotten what it asked for
		if err == nil && p.egress.begin() {
			p.egress.tcp.all[lost] = &connection{far: fd, state: accepting, until: time.Now().Add(acceptTime)}
		}
		if p.egress.giveUp(time.Now()); p.egress.tcp.all[lost] == nil {
			t.Error("it is given up at once")
		}
		if p.egress.giveUp(time.Now().Add(time.Hour)) || p.egress.tcp.all[lost] != nil {
			t.Error("it is kept for an hour")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(c, []byte("after")); err != nil {
		t.Errorf("after an hour: %v", err)
	}
	c.Close()
	p.idle()
}

// A conversation in which nothing was said for an hour is none any more, as where the kernel
// translates addresses; the next datagram begins another, at the same sockets of both sides.
func TestAnHourWithoutADatagram(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	w.echoDatagrams(remoteAddr + ":53")
	c, err := dial(p.ns, "udp", remoteAddr+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	for _, word := range []string{"before", "after"} {
		if err := exchange(c, []byte(word)); err != nil {
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
	x := &conversation{}
	x.last.Store(time.Now().Add(-unanswered - time.Second).Unix())
	if _, over := x.silent(); !over {
		t.Error("a question that nobody answers is waited for")
	}
	x.answered.Store(true)
	if _, over := x.silent(); over {
		t.Error("what was answered ends as soon as what was not")
	}
}

// anHourPasses without a datagram.
func (p *testPod) anHourPasses() {
	p.egress.udp.mu.Lock()
	defer p.egress.udp.mu.Unlock()
	for _, x := range p.egress.udp.all {
		x.last.Store(time.Now().Add(-time.Hour).Unix())
		x.near.SetReadDeadline(time.Now())
	}
}
