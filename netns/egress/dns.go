package egress

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// dnsPort is where a resolver is asked, at the gateway.
const dnsPort = 53

// isDNS says whether something is for the resolver.
func (e *Proxy) isDNS(to netip.AddrPort) bool {
	gateway := e.config.Pool.Gateway()
	return to.Port() == dnsPort && (to.Addr() == gateway.V4 || to.Addr() == gateway.V6)
}

// serveDNSConn has the resolver serve a connection.
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

// connOf makes a connection of a descriptor, which it closes.
func connOf(fd int) (*net.TCPConn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// serveDNSDatagram has the resolver answer a datagram.
func (e *Proxy) serveDNSDatagram(f flow, query []byte) {
	if e.config.Names == nil {
		e.inject(icmpUnreachable(udpPacket(f), f.dst.Addr(), noPort))
		return
	}
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed || !e.acquireFlow() {
		return // it will be asked again
	}
	e.udp.running.Go(func() {
		defer e.releaseFlow()
		answer := e.config.Names.Answer(query)
		if answer == nil {
			return
		}
		_ = e.router.Do(func() error { return sendDatagram(f.dst, f.src, answer) }) // one that is lost is asked for again
	})
}

// sendDatagram sends a datagram from one address to another. The socket is not connected: the next
// question, which often follows at once, would come to it.
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
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // with other supervisors
	if err == nil {
		err = unix.Bind(fd, rawsys.Sockaddr(from))
	}
	if err == nil {
		err = unix.Sendto(fd, b, 0, rawsys.Sockaddr(to))
	}
	return err
}
