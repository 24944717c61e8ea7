package ingress

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxDatagram exceeds the length of every datagram.
const maxDatagram = 1 << 16

var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// clientRoute is the source of a datagram and its destination address on the host.
type clientRoute struct {
	client       netip.AddrPort
	replyControl string // control message for the answer
	six          bool   // an IPv6 socket, which uses mapped addresses for IPv4
}

// udpPort forwards datagrams.
type udpPort struct {
	pauser
	server *Server
	conn   *net.UDPConn
	raw    syscall.RawConn
	to     target

	mu     sync.Mutex
	closed bool
	flows  map[clientRoute]*udpFlow
}

func (s *Server) addUDP(file *os.File, to target) (portServer, error) {
	c, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return nil, errors.New("it is no socket of UDP")
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, err
	}
	p := &udpPort{pauser: newPauser(conn.SetReadDeadline), server: s, conn: conn, raw: raw, to: to, flows: map[clientRoute]*udpFlow{}}
	s.all.Go(p.receive)
	return p, nil
}

// close ends the port's flows too: their answers could no longer be sent to a client, and would be
// lost for the flow that the same client starts next at another port.
func (p *udpPort) close() {
	p.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, f := range p.flows {
		f.pod.Close()
	}
}

func (p *udpPort) remove() { p.close() }

// receive forwards datagrams until the port is closed.
func (p *udpPort) receive() {
	for {
		err := p.receiveOne()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.wait()
		case err != nil: // the ICMP error of an earlier answer concerns the client only
			if !errors.Is(err, unix.ECONNREFUSED) {
				p.server.logError(err)
			}
		}
	}
}

// receiveOne waits for a datagram and forwards it. It holds a buffer only while there is data in
// it.
func (p *udpPort) receiveOne() error {
	var held *[maxDatagram]byte
	var oob [128]byte
	var n, oobn int
	var from unix.Sockaddr
	var err error
	defer func() {
		if held != nil {
			datagrams.Put(held)
		}
	}()
	rerr := p.raw.Read(func(fd uintptr) bool {
		if held == nil {
			held = datagrams.Get().(*[maxDatagram]byte)
		}
		n, oobn, _, from, err = unix.Recvmsg(int(fd), held[:], oob[:], 0)
		if err == unix.EAGAIN {
			datagrams.Put(held)
			held = nil
			return false
		}
		return true
	})
	if err = errors.Join(rerr, err); err != nil {
		return err
	}
	route, ok := parseRoute(from, oob[:oobn])
	if !ok {
		return nil
	}
	f, err := p.flowFor(route)
	if f == nil || err != nil {
		return err
	}
	f.touch(0)
	if _, err := f.pod.Write(held[:n]); err != nil && !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// parseRoute reads a datagram's client and makes the control message of its answers: from the
// address that it was sent to, through whatever link leads to the client.
func parseRoute(from unix.Sockaddr, oob []byte) (clientRoute, bool) {
	var r clientRoute
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		r.client = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		r.six = true
		client := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 {
			client = client.WithZone(zone(a.ZoneId))
		}
		r.client = netip.AddrPortFrom(client, uint16(a.Port))
	default:
		return r, false
	}
	r.replyControl = replyFrom(oob, r.client.Addr())
	return r, true
}

// sendReplies forwards the pod's answers to the client until the flow is idle.
func (p *udpPort) sendReplies(route clientRoute, f *udpFlow) {
	to := sockaddrFor(route.client, route.six)
	for {
		f.pod.SetReadDeadline(f.expiry())
		held, n, err := readPooled(f.pod)
		if held != nil {
			if err == nil {
				f.touch(answeredTimeout)
				p.sendReply(held[:n], route.replyControl, to)
			}
			datagrams.Put(held)
		}
		var timeout interface{ Timeout() bool }
		switch {
		case err == nil, errors.Is(err, unix.ECONNREFUSED):
		case errors.As(err, &timeout) && timeout.Timeout() && time.Now().Before(f.expiry()):
		default:
			return
		}
	}
}

// readPooled reads a datagram. For a socket it takes a buffer only once there is a datagram; the
// caller returns the buffer.
func readPooled(c net.Conn) (held *[maxDatagram]byte, n int, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		held = datagrams.Get().(*[maxDatagram]byte)
		n, err = c.Read(held[:])
		return held, n, err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	rerr := raw.Read(func(fd uintptr) bool {
		if held == nil {
			held = datagrams.Get().(*[maxDatagram]byte)
		}
		n, err = unix.Read(int(fd), held[:])
		if err == unix.EAGAIN {
			datagrams.Put(held)
			held = nil
			return false
		}
		return true
	})
	if rerr != nil {
		err = rerr
	}
	return held, n, err
}

// sendReply sends an answer if there is room for it now: a datagram may be lost.
func (p *udpPort) sendReply(b []byte, oob string, to unix.Sockaddr) {
	_ = p.raw.Control(func(fd uintptr) {
		_ = unix.Sendmsg(int(fd), b, []byte(oob), to, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
}
