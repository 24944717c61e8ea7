package netstack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/relay"
)

const (
	dialTimeout    = 2 * time.Minute  // about the kernel's own; servers may be far away
	connectTimeout = 10 * time.Second // the pod is on this host
)

// podConn is the pod's end of a connection.
type podConn struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
}

// reset closes the connection so that the pod sees a reset.
func (c podConn) reset() {
	c.endpoint.Abort()
	c.TCPConn.Close()
}

// handleTCP handles a connection from the pod. It connects to the destination first, so that the
// pod sees a refused connection as refused. The stack calls it on a goroutine of its own.
func (s *Stack) handleTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	dst := addrPort(id.LocalAddress, id.LocalPort)
	if dst == netip.AddrPortFrom(stackproto.ResolverAddr, namesPort) && s.config.Names != nil {
		if in, ok := s.accept(r); ok {
			s.running.Add(1)
			defer s.running.Done()
			defer s.release(in)
			s.config.Names.ServeConn(in)
		}
		return
	}
	to, ok := s.policy.Target("TCP", dst)
	if !ok {
		r.Complete(true)
		return
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	out, err := d.Dial("tcp", to.String())
	if err != nil {
		r.Complete(true)
		return
	}
	in, ok := s.accept(r)
	if !ok {
		out.Close()
		return
	}
	s.running.Add(1)
	defer s.running.Done()
	defer s.release(in)
	proxyConns(in, out.(*net.TCPConn))
}

// accept accepts the pod's connection and registers it.
func (s *Stack) accept(r *tcp.ForwarderRequest) (podConn, bool) {
	var queue waiter.Queue
	ep, err := r.CreateEndpoint(&queue)
	if err != nil {
		r.Complete(true)
		return podConn{}, false
	}
	r.Complete(false)
	ep.SocketOptions().SetDelayOption(false)
	in := podConn{gonet.NewTCPConn(&queue, ep), ep}
	if !s.acquire(in) {
		in.reset()
		return podConn{}, false
	}
	return in, true
}

// Forward connects to a port of the pod with a client's address and proxies the connection until
// both sides have ended or ctx is done.
func (s *Stack) Forward(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int) {
	in, err := s.dialTCP(ctx, from, port)
	if err != nil {
		relay.Reset(client)
		return
	}
	if !s.acquire(in) {
		in.reset()
		relay.Reset(client)
		return
	}
	s.running.Add(1)
	defer s.running.Done()
	defer s.release(in)
	stop := context.AfterFunc(ctx, func() {
		in.reset()
		relay.Reset(client)
	})
	defer stop()
	proxyConns(in, client)
}

func (s *Stack) dialTCP(ctx context.Context, from netip.AddrPort, port int) (podConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	to, sources := s.clientTarget(from, port)
	var errs []error
	for _, source := range sources {
		in, err := s.dial(ctx, source, to)
		if err == nil {
			return in, nil
		}
		errs = append(errs, err)
	}
	return podConn{}, errors.Join(errs...)
}

// clientTarget returns the destination of a client's connection in the pod and its candidate
// sources: the client's own address, with its own port if that is free, or, where the pod would
// interpret that address as another host, stackproto.ResolverAddr for this host and
// stackproto.UnknownClientAddr for others. Connections to the router's
// addresses do not come here.
func (s *Stack) clientTarget(from netip.AddrPort, port int) (to netip.AddrPort, sources []netip.AddrPort) {
	addresses, a := s.config.Pool.Addresses(s.config.Slot), from.Addr()
	to = netip.AddrPortFrom(addresses.V4, uint16(port))
	if !a.IsGlobalUnicast() || a.Zone() != "" || s.config.Pool.Contains(a) {
		shown := stackproto.UnknownClientAddr
		if a.IsLoopback() {
			shown = stackproto.ResolverAddr
		}
		return to, []netip.AddrPort{netip.AddrPortFrom(shown, 0)}
	}
	if a.Is6() {
		to = netip.AddrPortFrom(addresses.V6, uint16(port))
	}
	return to, []netip.AddrPort{from, netip.AddrPortFrom(from.Addr(), 0)}
}

// chunkSize is the size of one copy.
const chunkSize = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// proxyConns copies in both directions until both sides have ended, including half-closes and
// resets.
func proxyConns(in podConn, out *net.TCPConn) {
	done := make(chan struct{})
	broken := func() {
		in.reset()
		relay.Reset(out)
	}
	go func() {
		defer close(done)
		if copyStream(out, in) != nil || out.CloseWrite() != nil {
			broken()
		}
	}()
	if copyStream(in, out) != nil || in.CloseWrite() != nil {
		broken()
	}
	<-done
	in.Close()
	out.Close()
}

// copyStream returns nil at the end of src.
func copyStream(dst io.Writer, src io.Reader) error {
	held := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(held)
	for {
		n, err := src.Read(held[:])
		if n > 0 {
			if _, werr := dst.Write(held[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
