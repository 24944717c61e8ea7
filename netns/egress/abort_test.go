package egress

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
)

// A new connection from the same port means that the pod has given up the old one: the proxy drops
// it, however often that happens.
func TestSupersede(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	nettest.Serve(t, w.Remote, nettest.RemoteAddr+":80", nettest.Echo)
	from, to := netip.AddrPortFrom(p.own.V4, 4000), netip.MustParseAddrPort(nettest.RemoteAddr+":80")
	number := uint32(0)
	for range 5 {
		err := p.egress.loop.Do(func() error {
			for range 3 { // before the server has answered
				number++
				p.egress.handleSYN(flow{from, to}, firstPacket(from, to, number))
			}
			if n := p.egress.flows.Load(); n != 1 {
				t.Errorf("%d are under way, want 1", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		nettest.Await(t, "the far side has answered", func() (is bool) {
			p.egress.loop.Do(func() error {
				c := p.egress.tcp.all[flow{from, to}]
				is = c != nil && c.state == accepting
				return nil
			})
			return is
		})
	}
	p.egress.loop.Do(func() error { p.egress.expire(time.Now().Add(time.Hour)); return nil })
	nettest.WaitIdle(t, p.egress)
}

// firstPacket is a SYN.
func firstPacket(from, to netip.AddrPort, number uint32) packet {
	s := make([]byte, 20)
	binary.BigEndian.PutUint16(s, from.Port())
	binary.BigEndian.PutUint16(s[2:], to.Port())
	binary.BigEndian.PutUint32(s[4:], number)
	s[12], s[13] = 5<<4, flagSYN
	p, _ := parse(ipPacket(from.Addr(), to.Addr(), protoTCP, s))
	return p
}

// The loop does not wait for a deleted device, whether it went with the router or was removed
// otherwise: it would report events without end and occupy a processor.
func TestDeviceIsRemoved(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	tun := int(p.egress.tun.Fd())
	if !testenv.IsWaitedFor(t, tun) {
		t.Fatal("nobody waits for the device")
	}
	if err := w.Router.Detach(1); err != nil {
		t.Fatal(err)
	}
	nettest.Await(t, "nobody waits for the device", func() bool { return !testenv.IsWaitedFor(t, tun) })
	nettest.WaitIdle(t, p.egress)
}
