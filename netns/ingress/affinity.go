package ingress

import (
	"context"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// Affinity returns the pod that serves a client of a port; the zero AddrPort means the server's own pod.
// shown reports whether that pod may see the client's own address: its replies to any address pass
// through the network of the NetnsDialer. An Affinity is called for every connection and must be fast.
type Affinity func(client netip.Addr) (to netip.AddrPort, shown bool)

// AddShared is Add for a port some of whose clients are served by other pods. dialer connects to these
// pods.
func (s *Server) AddShared(file *os.File, protocol string, to int, elsewhere Affinity, dialer *NetnsDialer) error {
	return s.add(file, protocol, target{to, elsewhere, dialer})
}

// target is the destination of a port's clients.
type target struct {
	port     int          // of the pod
	affinity Affinity     // nil: all clients go to the pod
	dialer   *NetnsDialer // connects to other pods
}

// redirect returns the address of a client in another pod, and whether that pod may see the
// client's address. The zero AddrPort means that the client belongs to the own pod.
func (t target) redirect(client netip.Addr) (to netip.AddrPort, shown bool) {
	if t.affinity == nil {
		return netip.AddrPort{}, false
	}
	to, shown = t.affinity(client)
	return to, shown && t.dialer.mayShowClient(client, to.Addr())
}

// infoOf returns what a Filter needs to know of a client of the target.
func (t target) infoOf(client netip.Addr, protocol string) clientInfo {
	to, _ := t.redirect(client)
	return clientInfo{client, protocol, t.port, to.IsValid()}
}

// resolve returns the result of redirect, or else the own pod's address as d reaches it.
func (t target) resolve(d *NetnsDialer, client netip.Addr) (to netip.AddrPort, shown bool) {
	if to, shown = t.redirect(client); to.IsValid() {
		return to, shown
	}
	return d.podTarget(client, t.port)
}

// forward forwards one connection. local connects to the pod of this process.
func (t target) forward(ctx context.Context, client *net.TCPConn, from netip.AddrPort, local Forwarder) {
	if to, shown := t.redirect(from.Addr()); to.IsValid() {
		t.dialer.forward(ctx, client, from, to, shown)
		return
	}
	local.Forward(ctx, client, from, t.port)
}

// forward is Forward of Forwarder for a resolved address.
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
