package netstack

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/podrun/podrun/netns/netstack/stackproto"
)

const (
	namesPort      = 53
	maxDatagram    = 1 << 16
	sessionTimeout = time.Minute // an idle session ends after it
	queryTimeout   = 10 * time.Second
)

var datagrams = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// handleUDP handles a UDP session that the pod starts. If a datagram cannot be sent the pod gets an
// error.
func (s *Stack) handleUDP(r *udp.ForwarderRequest) bool {
	id := r.ID()
	dst := addrPort(id.LocalAddress, id.LocalPort)
	names := dst == netip.AddrPortFrom(stackproto.ResolverAddr, namesPort) && s.config.Names != nil
	var out net.Conn
	if !names {
		to, ok := s.policy.Target("UDP", dst)
		if !ok {
			return false
		}
		var err error
		if out, err = net.Dial("udp", to.String()); err != nil {
			return false
		}
	}
	var queue waiter.Queue
	ep, err := r.CreateEndpoint(&queue)
	if err != nil {
		if out != nil {
			out.Close()
		}
		return true
	}
	in := gonet.NewUDPConn(&queue, ep)
	ends := []closer{in}
	if out != nil {
		ends = append(ends, out)
	}
	if !s.acquire(ends...) {
		for _, c := range ends {
			c.Close()
		}
		return true // the next datagram starts another
	}
	s.running.Go(func() {
		defer s.release(ends...)
		if names {
			s.serveDNS(in)
		} else {
			proxyDatagrams(in, out)
		}
	})
	return true
}

// serveDNS answers a query with the resolver.
func (s *Stack) serveDNS(in net.Conn) {
	defer in.Close()
	b := make([]byte, maxDatagram)
	for {
		in.SetReadDeadline(time.Now().Add(queryTimeout))
		n, err := in.Read(b)
		if err != nil {
			return
		}
		if a := s.config.Names.Answer(b[:n]); a != nil {
			if _, err := in.Write(a); err != nil {
				return
			}
		}
	}
}

// proxyDatagrams copies datagrams until none has arrived for sessionTimeout.
func proxyDatagrams(in, out net.Conn) {
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pumpDatagrams(in, out, &last)
	}()
	pumpDatagrams(out, in, &last)
	<-done
}

func pumpDatagrams(dst, src net.Conn, last *atomic.Int64) {
	defer dst.Close()
	defer src.Close()
	held := datagrams.Get().(*[maxDatagram]byte)
	defer datagrams.Put(held)
	for {
		until := time.Unix(0, last.Load()).Add(sessionTimeout)
		src.SetReadDeadline(until)
		n, err := src.Read(held[:])
		switch {
		case err == nil:
			last.Store(time.Now().UnixNano())
			_, _ = dst.Write(held[:n]) // a datagram may be lost
		case isTimeout(err) && time.Unix(0, last.Load()).Add(sessionTimeout).After(time.Now()):
		case isRefused(err): // the other side's port was closed; it may open later
		default:
			return
		}
	}
}

// DialUDP starts a UDP session with a port of the pod, with a client's address.
func (s *Stack) DialUDP(from netip.AddrPort, port int) (net.Conn, error) {
	to, sources := s.clientTarget(from, port)
	var c *gonet.UDPConn
	var err error
	for _, source := range sources {
		local, remote := fullAddress(source), fullAddress(to)
		if c, err = gonet.DialUDP(s.stack, &local, &remote, protocolOf(to.Addr())); err == nil {
			return c, nil
		}
	}
	return nil, err
}
