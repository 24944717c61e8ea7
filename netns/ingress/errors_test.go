package ingress

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
)

// ICMP errors of a pod's kernel about packets with a client's address reach the socket that has
// sent them, also for a pod whose own packets leave through the kernel.
func TestPodErrorsAreForwarded(t *testing.T) {
	s := newAffinityBed(t)
	const nobody = 9
	for i, p := range s.pods {
		for _, client := range []string{nettest.RemoteAddr, nettest.RemoteAddr6} {
			c, err := p.inside.DialUDP(netip.AddrPortFrom(netip.MustParseAddr(client), 4000), nobody)
			must(t, err)
			t.Cleanup(func() { c.Close() })
			_, err = c.Write([]byte("?"))
			must(t, err)
			must(t, c.SetDeadline(time.Now().Add(nettest.Timeout)))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("pod %d, in the name of %s: %v", i, client, err)
			}
		}
	}
}
