package ingress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// Inside is a Dialer that connects inside a network that knows the pod, once it has been
// entered.
type Inside struct {
	loop *relay.Loop // whose thread is in there

	// Addrs are the pod's, of which a client's connection goes to that of its own
	// family, or to the first.
	Addrs []netip.Addr

	// Transparent says that answers to any address come back to this network: then a
	// client is shown with its own, unless that means something else here.
	Transparent bool

	// Ours are the networks whose addresses mean something else here: those of pods.
	Ours []netip.Prefix
}

// Enter begins to connect in a network namespace, until Close.
func (d *Inside) Enter(ns string) (err error) {
	d.loop, err = relay.NewLoop(ns)
	return err
}

// Close ends what is under way, and all.
func (d *Inside) Close() { d.loop.Close() }

// connectTime is how long the pod may take to answer: it is on this machine.
const connectTime = 10 * time.Second

// target is the pod's address for a client, and whether it may see the client's.
func (d *Inside) target(client netip.Addr) (to netip.Addr, shown bool) {
	if len(d.Addrs) == 0 {
		return netip.Addr{}, false
	}
	to = d.Addrs[0]
	for _, a := range d.Addrs {
		if a.Is4() == client.Is4() {
			to = a
			break
		}
	}
	shown = d.Transparent && to.Is4() == client.Is4() && client.IsGlobalUnicast()
	for _, p := range d.Ours {
		shown = shown && !p.Contains(client)
	}
	return to, shown
}

// DialUDP begins a conversation with a port of the pod for a client. Where the client's own
// port is in use there, it is shown with another.
func (d *Inside) DialUDP(client netip.AddrPort, port int) (net.Conn, error) {
	var fd int
	var to netip.AddrPort
	err := d.loop.Do(func() (err error) {
		fd, to, err = d.connect(unix.SOCK_DGRAM, client, port)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close()
	return net.FileConn(f)
}

// connect begins to connect. The calling thread is in there.
func (d *Inside) connect(kind int, client netip.AddrPort, port int) (fd int, to netip.AddrPort, err error) {
	addr, shown := d.target(client.Addr())
	if !addr.IsValid() {
		return -1, to, errors.New("connect to the pod: it has no address")
	}
	to = netip.AddrPortFrom(addr, uint16(port))
	sources := []netip.AddrPort{{}}
	if shown {
		sources = []netip.AddrPort{client, netip.AddrPortFrom(client.Addr(), 0)}
	}
	for _, from := range sources {
		fd, err = socket(kind, d.Transparent, from, to)
		if err != unix.EADDRINUSE && err != unix.EADDRNOTAVAIL {
			break
		}
	}
	if err != nil {
		return -1, to, fmt.Errorf("connect to %s: %w", to, err)
	}
	return fd, to, nil
}

// socket begins to connect.
func socket(kind int, transparent bool, from, to netip.AddrPort) (fd int, err error) {
	family, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if to.Addr().Is6() {
		family, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	set := func(level, option int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, 1)
		}
	}
	if transparent { // the router's rules know such sockets
		set(level, option)
	}
	if from.IsValid() {
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR)
		if err == nil {
			err = unix.Bind(fd, sockaddr(from))
		}
	}
	if err == nil {
		err = unix.Connect(fd, sockaddr(to))
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
