package egress

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// dnsPort is the resolver's port at the gateway.
const dnsPort = 53

// isDNS reports whether a destination is the resolver.
func (e *Proxy) isDNS(to netip.AddrPort) bool {
	gateway := e.config.Pool.Gateway()
	return to.Port() == dnsPort && (to.Addr() == gateway.V4 || to.Addr() == gateway.V6)
}

// serveDNSConn serves a connection with the resolver.
func (e *Proxy) serveDNSConn(fd int) {
	c, err := connOf(fd)
	if err != nil {
		return
	}
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	if e.config.Names == nil || e.tcp.closed || !e.acquireFlow() {
		relay.Reset(c)
		return
	}
	if e.tcp.dnsConns == nil {
		e.tcp.dnsConns = map[*net.TCPConn]bool{}
	}
	e.tcp.dnsConns[c] = true
	e.tcp.running.Go(func() {
		e.config.Names.ServeConn(c)
		e.tcp.mu.Lock()
		defer e.tcp.mu.Unlock()
		delete(e.tcp.dnsConns, c)
		e.releaseFlow()
	})
}

// connOf makes a connection from a descriptor and closes the descriptor.
func connOf(fd int) (*net.TCPConn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// serveDNSDatagram answers a datagram with the resolver.
func (e *Proxy) serveDNSDatagram(f flow, query []byte) {
	if e.config.Names == nil {
		e.inject(icmpUnreachable(udpPacket(f), f.dst.Addr(), noPort))
		return
	}
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed || !e.acquireFlow() {
		return // the client retries
	}
	e.udp.running.Go(func() {
		defer e.releaseFlow()
		answer := e.config.Names.Answer(query)
		if answer == nil {
			return
		}
		_ = e.router.Do(func() error { return sendDatagram(f.dst, f.src, answer) }) // the client retries if it is lost
	})
}

// sendDatagram sends a datagram from one address to another. The socket is not connected: otherwise
// it would receive the next query, which often follows at once.
func sendDatagram(from, to netip.AddrPort, b []byte) error {
	family := unix.AF_INET
	if from.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // other supervisors bind the same address
	if err == nil {
		err = unix.Bind(fd, rawsys.Sockaddr(from))
	}
	if err == nil {
		err = unix.Sendto(fd, b, 0, rawsys.Sockaddr(to))
	}
	return err
}
