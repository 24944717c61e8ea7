package egress

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
)

// Cut ends connections at both ends, also connections that the kernel accepted before the far side did.
func TestCut(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	l := nettest.Listen(t, w.Remote, nettest.RemoteAddr+":80")
	other := nettest.Serve(t, w.Remote, nettest.RemoteAddr+":81", nettest.Echo)
	c := nettest.Connect(t, p.ns, "tcp", l.Addr().String())
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	stays := nettest.Connect(t, p.ns, "tcp", other.Addr().String())
	if err := nettest.RoundTrip(stays, []byte("word")); err != nil {
		t.Fatal(err)
	}
	p.egress.Cut(func(to netip.AddrPort) bool { return to.Port() != 80 })
	for name, end := range map[string]interface{ Read([]byte) (int, error) }{"the pod": c, "the remote host": far} {
		if n, err := end.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s reads %d bytes", name, n)
		}
	}
	if err := nettest.RoundTrip(stays, []byte("word")); err != nil {
		t.Error(err)
	}
}
