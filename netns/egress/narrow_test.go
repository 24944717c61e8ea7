package egress

import (
	"bytes"
	"errors"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/podrun/podrun/netns"
)

// A link of the host's that is narrower than the pod's own stops nobody: neither streams,
// nor datagrams that have to be cut in pieces.
func TestNarrowLink(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	narrow := func(name string) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(link, 1280) // the least that IPv6 allows
	}
	if err := errors.Join(narrow("out"), netns.Do(w.remote, func() error { return narrow("in") })); err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, at := range []string{remoteAddr, "[" + remoteAddr6 + "]"} {
		serve(t, listen(t, w.remote, at+":80"), echoAll)
		c, err := dial(p.ns, "tcp", at+":80")
		if err == nil {
			err = exchange(c, text)
			c.Close()
		}
		if err != nil {
			t.Errorf("a stream to %s: %v", at, err)
		}
		w.echoDatagrams(at + ":53")
		d, err := dial(p.ns, "udp", at+":53")
		if err == nil {
			err = exchange(d, text[:8000])
			d.Close()
		}
		if err != nil {
			t.Errorf("datagrams to %s: %v", at, err)
		}
	}
}
