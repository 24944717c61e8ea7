package ingress

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/netns/hostport"
)

// A Filter resets clients that it refuses, new ones and connected ones. Others are not affected.
func TestFilter(t *testing.T) {
	w := newWorld(t)
	nettest.Serve(t, w.pod, ":80", nettest.Echo)
	s := w.publish(t, w.dialer(t, false), hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	remote, own := nettest.Connect(t, w.Remote, "tcp", "10.77.0.1:8080"), nettest.Connect(t, w.Host, "tcp", "127.0.0.1:8080")
	use := func() (rerr, oerr error) {
		return nettest.RoundTrip(remote, []byte("word")), nettest.RoundTrip(own, []byte("word"))
	}
	if rerr, oerr := use(); rerr != nil || oerr != nil {
		t.Fatal(rerr, oerr)
	}
	type question struct {
		client   netip.Addr
		protocol string
		port     int
	}
	asked := map[question]bool{}
	s.SetFilter(func(client netip.Addr, protocol string, port int) bool {
		asked[question{client, protocol, port}] = true
		return client.IsLoopback()
	})
	if rerr, oerr := use(); rerr == nil || oerr != nil {
		t.Errorf("running connections: %v for the client that may not connect, %v for the other", rerr, oerr)
	}
	if !asked[question{netip.MustParseAddr(nettest.RemoteAddr), "TCP", 80}] {
		t.Errorf("the filter was asked for %v", asked)
	}
	if err := roundTrip(w.Remote, "10.77.0.1:8080"); err == nil {
		t.Error("a client that may not connect is served")
	}
	if err := roundTrip(w.Host, "127.0.0.1:8080"); err != nil {
		t.Error(err)
	}
	s.SetFilter(nil)
	if err := roundTrip(w.Remote, "10.77.0.1:8080"); err != nil {
		t.Error(err)
	}
}

// roundTrip connects, sends a word, and reads it back.
func roundTrip(ns, to string) error {
	c, err := nettest.Dial(ns, "tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	return nettest.RoundTrip(c, []byte("word"))
}
