package ingress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// NetnsDialer is a UDPDialer that connects inside a network from which the pod is reachable, after
// Start.
type NetnsDialer struct {
	loop *relay.Loop // its thread is in that network

	// Addrs are the pod's addresses. A client's connection goes to the address of the client's family,
	// or to the first one.
	Addrs []netip.Addr

	// Transparent reports whether replies to any address are routed back to this network. Then
	// connections carry the client's address, except addresses of PodPrefixes.
	Transparent bool

	// PodPrefixes are the pods' networks. In the router their addresses belong to pods, so a client of
	// the host's network that has such an address is not shown to the pod.
	PodPrefixes []netip.Prefix

	// UnknownMark marks packets for clients of other hosts whose address the pod cannot see (SO_MARK);
	// 0: none.
	UnknownMark int
}

// Start starts to connect in a network namespace, until Close.
func (d *NetnsDialer) Start(ns string) (err error) {
	d.loop, err = relay.NewLoop(ns)
	return err
}

// Close ends all connections.
func (d *NetnsDialer) Close() { d.loop.Close() }

// connectTimeout is how long the pod may take to answer: it is on this host.
const connectTimeout = 10 * time.Second

// podTarget returns the address of a pod's port for a client, and whether it may see the client's
// address.
func (d *NetnsDialer) podTarget(client netip.Addr, port int) (to netip.AddrPort, shown bool) {
	if len(d.Addrs) == 0 {
		return netip.AddrPort{}, false
	}
	address := d.Addrs[0]
	for _, a := range d.Addrs {
		if a.Is4() == client.Is4() {
			address = a
			break
		}
	}
	return netip.AddrPortFrom(address, uint16(port)), d.mayShowClient(client, address)
}

// mayShowClient reports whether a client's address means the client itself at the destination.
func (d *NetnsDialer) mayShowClient(client, to netip.Addr) bool {
	shown := d.Transparent && to.Is4() == client.Is4() && client.IsGlobalUnicast()
	for _, p := range d.PodPrefixes {
		shown = shown && !p.Contains(client)
	}
	return shown
}

// DialUDP starts a flow to a port of the pod for a client. If the client's own port is in use
// there, the pod sees another.
func (d *NetnsDialer) DialUDP(client netip.AddrPort, port int) (net.Conn, error) {
	to, shown := d.podTarget(client.Addr(), port)
	return d.dialUDP(client, to, shown)
}

func (d *NetnsDialer) dialUDP(client, to netip.AddrPort, shown bool) (net.Conn, error) {
	var fd int
	err := d.loop.Do(func() (err error) {
		fd, err = d.connect(unix.SOCK_DGRAM, client, to, shown)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close()
	return net.FileConn(f)
}

// connect starts to connect, with the client's address if shown is set. The calling thread is in
// the network.
func (d *NetnsDialer) connect(kind int, client, to netip.AddrPort, shown bool) (fd int, err error) {
	if !to.IsValid() {
		return -1, errors.New("connect to the pod: it has no address")
	}
	sources := []netip.AddrPort{{}}
	if shown {
		sources = []netip.AddrPort{client, netip.AddrPortFrom(client.Addr(), 0)}
	}
	for _, from := range sources {
		mark := 0
		if !shown && !client.Addr().IsLoopback() {
			mark = d.UnknownMark
		}
		fd, err = connectSocket(kind, d.Transparent, mark, from, to)
		if err != unix.EADDRINUSE && err != unix.EADDRNOTAVAIL {
			break
		}
	}
	if err == nil && kind == unix.SOCK_STREAM && !slices.Contains(d.Addrs, to.Addr()) {
		if err = setKeepalive(fd); err != nil { // another pod may disappear without closing
			unix.Close(fd)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("connect to %s: %w", to, err)
	}
	return fd, nil
}

// connectSocket starts to connect.
func connectSocket(kind int, transparent bool, mark int, from, to netip.AddrPort) (fd int, err error) {
	family, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if to.Addr().Is6() {
		family, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	if fd, err = rawsys.Socket(family, kind); err != nil {
		return -1, err
	}
	set := func(level, option, value int) {
		if err == nil {
			err = rawsys.SetsockoptInt(fd, level, option, value)
		}
	}
	if mark != 0 {
		set(unix.SOL_SOCKET, unix.SO_MARK, mark)
	}
	if transparent { // the router's rules match such sockets
		set(level, option, 1)
	}
	if from.IsValid() {
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if err == nil {
			err = rawsys.Bind(fd, from, zoneID(from.Addr().Zone()))
		}
	}
	if err == nil {
		err = rawsys.Connect(fd, to, zoneID(to.Addr().Zone()))
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
