package egress

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
)

// A pod that begins conversations without end has as many as there is room for: the one that
// has been silent for longest makes room for the next.
func TestConversationsWithoutEnd(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	p.egress.reading.Lock()
	p.egress.max = 2
	p.egress.reading.Unlock()
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
