package ingress

import (
	"context"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// Elsewhere says to which other pod a client of a port goes; not valid: to the server's own.
// shown says that the other pod answers any address by the network of the Inside that leads
// there, and so may see the client's. It is called for every connection, and is to be quick.
type Elsewhere func(client netip.Addr) (to netip.AddrPort, shown bool)

// Share is Add for a port some of whose clients are other pods', to whom an Inside leads.
func (s *Server) Share(file *os.File, protocol string, to int, elsewhere Elsewhere, by *Inside) error {
	return s.serve(file, protocol, target{to, elsewhere, by})
}

// target is where clients of a port go.
type target struct {
	port      int       // of the pod
	elsewhere Elsewhere // nil: all go there
	by        *Inside   // leads elsewhere
}

// other is where a client goes in another pod, and whether that may see the client's address;
// not valid: the client is the pod's own.
func (t target) other(client netip.Addr) (to netip.AddrPort, shown bool) {
	if t.elsewhere == nil {
		return netip.AddrPort{}, false
	}
	to, shown = t.elsewhere(client)
	return to, shown && t.by.shows(client, to.Addr())
}

// way is other, or else the same of the pod that d leads to.
func (t target) way(d *Inside, client netip.Addr) (to netip.AddrPort, shown bool) {
	if to, shown = t.other(client); to.IsValid() {
		return to, shown
	}
	return d.own(client, t.port)
}

// carry is one connection's life. own carries what is the pod's.
func (t target) carry(ctx context.Context, client *net.TCPConn, from netip.AddrPort, own Carrier) {
	if to, shown := t.other(from.Addr()); to.IsValid() {
		t.by.carry(ctx, client, from, to, shown)
		return
	}
	own.Carry(ctx, client, from, t.port)
}

// carry is as Carrier's.
func (d *Inside) carry(ctx context.Context, client *net.TCPConn, from, to netip.AddrPort, shown bool) {
	near, err := relay.Take(client)
	if err != nil {
		return
	}
	over := make(chan struct{})
	var end func()
	err = d.loop.Do(func() error {
		far, err := d.connect(unix.SOCK_STREAM, from, to, shown)
		if err == nil {
			end = d.loop.Meet(near, far, connectTime, func() { close(over) })
		}
		return err
	})
	if err != nil {
		relay.ResetFD(near)
		return
	}
	defer context.AfterFunc(ctx, func() {
		_ = d.loop.Do(func() error { end(); return nil }) // a loop that has ended has reset it
	})()
	<-over
}
