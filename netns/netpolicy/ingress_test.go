package netpolicy

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/netns/ingress"
)

// Clients of a published port are checked by their addresses. This host may always connect; a client
// whose address the pod cannot see may not pass for it.
func TestPublishedPorts(t *testing.T) {
	w := newTestbed(t, "a")
	w.serve("a", 80)
	d := &ingress.NetnsDialer{
		Addrs: w.catalog.Pods[0].Addresses, Transparent: true, PodPrefixes: []netip.Prefix{w.Pool.V4, w.Pool.V6}, UnknownMark: nft.UnknownClientMark,
	}
	if err := d.Start(w.RouterNS); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	check := func(want error, clients ...string) {
		t.Helper()
		for _, client := range clients {
			c, err := d.DialUDP(netip.AddrPortFrom(netip.MustParseAddr(client), 4711), 80)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Write([]byte("word"))
			if err == nil {
				c.SetDeadline(time.Now().Add(nettest.Timeout))
				_, err = c.Read(make([]byte, 4))
			}
			c.Close()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", client, err, want)
			}
		}
	}
	check(nil, "10.77.0.2", "fd77::2", "192.0.2.7", "127.0.0.1", "::1", "fe80::7")
	w.apply(ingressTo("a"))
	check(unix.EPERM, "10.77.0.2", "fd77::2", "192.0.2.7", "fe80::7", "10.88.0.9")
	check(nil, "127.0.0.1", "::1")
	w.apply(ingressTo("a", Rule{[]Peer{{Block: block("10.77.0.0/16", "10.77.9.0/24")}}, []Port{{"UDP", "", 80, 80}}}))
	check(nil, "10.77.0.2", "127.0.0.1", "::1")
	check(unix.EPERM, "fd77::2", "10.77.9.1", "192.0.2.7", "fe80::7")
}
