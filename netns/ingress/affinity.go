package ingress

import (
	"context"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// Affinity says to which other pod a client of a port goes; not valid: to the server's own.
// shown says that the other pod answers any address by the network of the Inside that leads
// there, and so may see the client's. It is called for every connection, and is to be quick.
type Affinity func(client netip.Addr) (to netip.AddrPort, shown bool)

// AddShared is Add for a port some of whose clients are other pods', to whom an Inside leads.
func (s *Server) AddShared(file *os.File, protocol string, to int, elsewhere Affinity, by *NetnsDialer) error {
	return s.add(file, protocol, target{to, elsewhere, by})
}

// target is where clients of a port go.
type target struct {
	port     int          // of the pod
	affinity Affinity     // nil: all go there
	dialer   *NetnsDialer // leads elsewhere
}

// redirect is where a client goes in another pod, and whether that may see the client's address;
// not valid: the client is the pod's own.
func (t target) redirect(client netip.Addr) (to netip.AddrPort, shown bool) {
	if t.affinity == nil {
		return netip.AddrPort{}, false
	}
	to, shown = t.affinity(client)
	return to, shown && t.dialer.mayShowClient(client, to.Addr())
}

// resolve is other, or else the same of the pod that d leads to.
func (t target) resolve(d *NetnsDialer, client netip.Addr) (to netip.AddrPort, shown bool) {
	if to, shown = t.redirect(client); to.IsValid() {
		return to, shown
	}
	return d.podTarget(client, t.port)
}

// forward is one connection's life. own carries what is the pod's.
func (t target) forward(ctx context.Context, client *net.TCPConn, from netip.AddrPort, own Forwarder) {
	if to, shown := t.redirect(from.Addr()); to.IsValid() {
		t.dialer.forward(ctx, client, from, to, shown)
		return
	}
	own.Forward(ctx, client, from, t.port)
}

// forward is as Carrier's.
func (d *NetnsDialer) forward(ctx context.Context, client *net.TCPConn, from, to netip.AddrPort, shown bool) {
	near, err := relay.TakeFD(client)
	if err != nil {
		return
	}
	over := make(chan struct{})
	var end func()
	err = d.loop.Do(func() error {
		far, err := d.connect(unix.SOCK_STREAM, from, to, shown)
		if err == nil {
			end = d.loop.ProxyPending(near, far, connectTimeout, func() { close(over) })
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
