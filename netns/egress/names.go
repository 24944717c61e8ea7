package egress

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/relay"
)

// namesPort is where a resolver is asked, at the gateway.
const namesPort = 53

// asksNames says whether something is for the resolver.
func (e *Egress) asksNames(to netip.AddrPort) bool {
	gateway := e.config.Pool.Gateway()
	return to.Port() == namesPort && (to.Addr() == gateway.V4 || to.Addr() == gateway.V6)
}

// nameConnection has the resolver serve a connection.
func (e *Egress) nameConnection(fd int) {
	c, err := connOf(fd)
	if err != nil {
		return
	}
	e.tcp.mu.Lock()
	defer e.tcp.mu.Unlock()
	if e.config.Names == nil || e.tcp.closed || !e.begin() {
		relay.Reset(c)
		return
	}
	if e.tcp.names == nil {
		e.tcp.names = map[*net.TCPConn]bool{}
	}
	e.tcp.names[c] = true
	e.tcp.over.Go(func() {
		e.config.Names.Converse(c)
		e.tcp.mu.Lock()
		defer e.tcp.mu.Unlock()
		delete(e.tcp.names, c)
		e.end()
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

// nameDatagram has the resolver answer a datagram.
func (e *Egress) nameDatagram(f flow, query []byte) {
	if e.config.Names == nil {
		e.inject(unreach(datagram(f), f.dst.Addr(), noPort))
		return
	}
	e.udp.mu.Lock()
	defer e.udp.mu.Unlock()
	if e.udp.closed || !e.begin() {
		return // it will be asked again
	}
	e.udp.over.Go(func() {
		defer e.end()
		answer := e.config.Names.Answer(query)
		if answer == nil {
			return
		}
		_ = e.router.Do(func() error { return say(f.dst, f.src, answer) }) // one that is lost is asked for again
	})
}

// say sends a datagram from one address to another. The socket is not connected: the next
// question, which often follows at once, would come to it.
func say(from, to netip.AddrPort, b []byte) error {
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
		err = unix.Bind(fd, netns.SockAddr(from))
	}
	if err == nil {
		err = unix.Sendto(fd, b, 0, netns.SockAddr(to))
	}
	return err
}
