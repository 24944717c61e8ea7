package egress

import (
	"net/netip"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns"
)

// A pod that has just been attached reaches others, and they it, with its first packet: one
// that is lost, or a neighbour that is not heard of, is asked again after a second. On a busy
// machine a few may take as long for other reasons.
func TestTheFirstPacketArrives(t *testing.T) {
	w := newWorld(t)
	one := w.attach(1)
	var late []time.Duration
	const pods, few = 40, 4
	for slot := netns.Slot(2); slot < 2+pods; slot++ {
		to := netip.AddrPortFrom(one.own.V4, 8000+uint16(slot))
		if slot%2 == 1 {
			to = netip.AddrPortFrom(one.own.V6, to.Port())
		}
		nettest.Listen(t, one.ns, to.String())
		pod := w.attach(slot)
		begun := time.Now()
		c := nettest.Connect(t, pod.ns, "tcp", to.String())
		if took := time.Since(begun); took > 900*time.Millisecond {
			late = append(late, took)
		}
		c.Close()
	}
	if len(late) > few {
		t.Errorf("of %d connections %d took %v", pods, len(late), late)
	}
}
