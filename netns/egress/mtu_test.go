package egress

import (
	"bytes"
	"errors"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
)

// A link of the host with a smaller MTU than the pod's blocks neither streams nor datagrams that
// have to be fragmented.
func TestNarrowLink(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	narrow := func(name string) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(link, 1280) // the minimum of IPv6
	}
	if err := errors.Join(narrow(nettest.HostLink), nsthread.Do(func() error { return narrow(nettest.RemoteLink) }, w.Remote)); err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, address := range []string{nettest.RemoteAddr, "[" + nettest.RemoteAddr6 + "]"} {
		nettest.Serve(t, w.Remote, address+":80", nettest.Echo)
		c, err := nettest.Dial(p.ns, "tcp", address+":80")
		if err == nil {
			err = nettest.RoundTrip(c, text)
			c.Close()
		}
		if err != nil {
			t.Errorf("a stream to %s: %v", address, err)
		}
		nettest.ServePacket(t, w.Remote, address+":53", nettest.EchoPacket)
		d, err := nettest.Dial(p.ns, "udp", address+":53")
		if err == nil {
			err = nettest.RoundTrip(d, text[:8000])
			d.Close()
		}
		if err != nil {
			t.Errorf("datagrams to %s: %v", address, err)
		}
	}
}
