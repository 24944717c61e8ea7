package egress

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/ipam"
)

// The first packet of a newly attached pod arrives, in both directions: TCP retransmits a packet
// that is lost, or waits for an unknown neighbour, after a second. On a busy host an answer may
// take as long for other reasons, so a few retransmissions are tolerated.
func TestFirstDatagramArrives(t *testing.T) {
	w := newTestbed(t)
	p := w.attach(1)
	again := 0
	const pods, few = 40, 4
	for slot := ipam.Slot(2); slot < 2+pods; slot++ {
		to := netip.AddrPortFrom(p.own.V4, 8000+uint16(slot))
		if slot%2 == 1 {
			to = netip.AddrPortFrom(p.own.V6, to.Port())
		}
		nettest.Listen(t, p.ns, to.String())
		pod := w.attach(slot)
		c := nettest.Connect(t, pod.ns, "tcp", to.String())
		if retransmitted(t, c) {
			again++
		}
		c.Close()
	}
	if again > few {
		t.Errorf("%d of %d connections sent their first packet again", again, pods)
	}
}

// retransmitted reports whether the kernel has sent a segment of the connection again.
func retransmitted(t *testing.T, c net.Conn) bool {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return info.Total_retrans > 0
}
