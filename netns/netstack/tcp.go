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

	"github.com/podrun/podrun/netns/relay"
	"github.com/podrun/podrun/netns/stackproc"
)

const (
	dialTime    = 2 * time.Minute  // the kernel's own, about: others may be far away
	connectTime = 10 * time.Second // the pod is on this machine
)

// inside is the pod's end of a connection.
type inside struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
}

// reset closes it as one that was broken.
func (c inside) reset() {
	c.endpoint.Abort()
	c.TCPConn.Close()
}

// connection is one that the pod begins: the other end is connected to first, so that a
// refused connection is refused. The stack calls it on a goroutine of its own.
func (s *Stack) connection(r *tcp.ForwarderRequest) {
	id := r.ID()
	dst := addrPort(id.LocalAddress, id.LocalPort)
	if dst == netip.AddrPortFrom(stackproc.Names, namesPort) && s.config.Names != nil {
		if in, ok := s.accept(r); ok {
			s.over.Add(1)
			defer s.over.Done()
			defer s.end(in)
			s.config.Names.Converse(in)
		}
		return
	}
	to, ok := s.rules.Target(dst)
	if !ok {
		r.Complete(true)
		return
	}
	d := net.Dialer{Timeout: dialTime, KeepAlive: -1}
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
	s.over.Add(1)
	defer s.over.Done()
	defer s.end(in)
	join(in, out.(*net.TCPConn))
}

// accept answers the pod, and counts the connection.
func (s *Stack) accept(r *tcp.ForwarderRequest) (inside, bool) {
	var queue waiter.Queue
	ep, err := r.CreateEndpoint(&queue)
	if err != nil {
		r.Complete(true)
		return inside{}, false
	}
	r.Complete(false)
	ep.SocketOptions().SetDelayOption(false)
	in := inside{gonet.NewTCPConn(&queue, ep), ep}
	if !s.begin(in) {
		in.reset()
		return inside{}, false
	}
	return in, true
}

// Carry connects to a port of the pod in the name of a client, and passes on what both say,
// until both have ended or ctx has.
func (s *Stack) Carry(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int) {
	in, err := s.dialTCP(ctx, from, port)
	if err != nil {
		relay.Reset(client)
		return
	}
	if !s.begin(in) {
		in.reset()
		relay.Reset(client)
		return
	}
	s.over.Add(1)
	defer s.over.Done()
	defer s.end(in)
	stop := context.AfterFunc(ctx, func() {
		in.reset()
		relay.Reset(client)
	})
	defer stop()
	join(in, client)
}

func (s *Stack) dialTCP(ctx context.Context, from netip.AddrPort, port int) (inside, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	to, sources := s.way(from, port)
	var errs []error
	for _, source := range sources {
		in, err := s.dial(ctx, source, to)
		if err == nil {
			return in, nil
		}
		errs = append(errs, err)
	}
	return inside{}, errors.Join(errs...)
}

// way is where a client's connection goes in the pod, and in whose name: its own, with its
// own port if that is free, or, where its address means something else to the pod,
// stackproc.Names.
// What is for the router's addresses does not come here.
func (s *Stack) way(from netip.AddrPort, port int) (to netip.AddrPort, sources []netip.AddrPort) {
	own, a := s.config.Pool.Of(s.config.Slot), from.Addr()
	to = netip.AddrPortFrom(own.V4, uint16(port))
	if !a.IsGlobalUnicast() || a.Zone() != "" || s.config.Pool.V4.Contains(a) || s.config.Pool.V6.Contains(a) {
		return to, []netip.AddrPort{netip.AddrPortFrom(stackproc.Names, 0)}
	}
	if a.Is6() {
		to = netip.AddrPortFrom(own.V6, uint16(port))
	}
	return to, []netip.AddrPort{from, netip.AddrPortFrom(from.Addr(), 0)}
}

// portion is what is passed on at once.
const portion = 64 << 10

var portions = sync.Pool{New: func() any { return new([portion]byte) }}

// join passes on what both say until both have ended, half-closes and resets included.
func join(in inside, out *net.TCPConn) {
	done := make(chan struct{})
	broken := func() {
		in.reset()
		relay.Reset(out)
	}
	go func() {
		defer close(done)
		if pass(out, in) != nil || out.CloseWrite() != nil {
			broken()
		}
	}()
	if pass(in, out) != nil || in.CloseWrite() != nil {
		broken()
	}
	<-done
	in.Close()
	out.Close()
}

// pass returns nil at the end of what src says.
func pass(dst io.Writer, src io.Reader) error {
	held := portions.Get().(*[portion]byte)
	defer portions.Put(held)
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
