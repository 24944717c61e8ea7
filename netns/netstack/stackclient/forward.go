package stackclient

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/relay"
)

// receive handles a process's messages until it exits.
func (s *Client) receive(p *process) {
	defer close(p.replies)
	for {
		m, files, err := p.channel.Receive()
		if err != nil {
			return
		}
		switch m.Verb {
		case stackproto.VerbStarted, stackproto.VerbPaused:
			p.replies <- m
		case stackproto.VerbEndpoint:
			if len(files) == 1 && s.config.Endpoint != nil {
				if to, ok := s.config.Endpoint(m.Proto, m.To); ok {
					_, _ = files[0].WriteString(to.String()) // the other end may be gone
				}
			}
		case stackproto.VerbQuery, stackproto.VerbQueryConn:
			if len(files) == 1 && s.config.Names != nil {
				s.serveDNS(m.Verb, files[0])
			}
		}
		stackproto.CloseAll(files)
	}
}

// serveDNS answers queries with the resolver, until the process closes the socket.
func (s *Client) serveDNS(verb string, file *os.File) {
	conn, err := stackproto.SocketOf(file)
	if err != nil {
		return
	}
	if verb == stackproto.VerbQueryConn {
		s.running.Go(func() { s.config.Names.ServeConn(conn) })
		return
	}
	s.running.Go(func() {
		defer conn.Close()
		asked := stackproto.DatagramConn{Conn: conn}
		held := stackproto.Buffers.Get().(*[stackproto.MaxDatagram]byte)
		defer stackproto.Buffers.Put(held)
		n, err := asked.Read(held[:])
		if err != nil {
			return
		}
		if a := s.config.Names.Answer(held[:n]); a != nil {
			_, _ = asked.Write(a) // the client may be gone
		}
	})
}

// Forward connects to a port of the pod with a client's address and proxies the connection until
// both sides have ended or ctx is done. It implements ingress.UDPDialer.
func (s *Client) Forward(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int) {
	life, err := s.sendConn(client, from, port)
	if err != nil {
		relay.Reset(client)
		return
	}
	client.Close() // the other process has a duplicate
	stop := context.AfterFunc(ctx, func() { life.Close() })
	defer stop()
	defer life.Close()
	_, _ = life.Read(make([]byte, 1)) // it closes without sending anything
}

// sendConn passes a client's connection to the stack process.
func (s *Client) sendConn(client *net.TCPConn, from netip.AddrPort, port int) (life *net.UnixConn, err error) {
	p := s.current()
	if p == nil {
		return nil, errRestarting
	}
	raw, err := client.SyscallConn()
	if err != nil {
		return nil, err
	}
	life, away, err := stackproto.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	cerr := raw.Control(func(fd uintptr) {
		err = p.channel.Send(stackproto.Message{Verb: stackproto.VerbConnection, From: from, Port: port}, int(fd), away)
	})
	if err = errors.Join(err, cerr); err != nil {
		life.Close()
		return nil, err
	}
	return life, nil
}

var errRestarting = errors.New("the pod's network in user space is being restarted")

// DialUDP starts a UDP session with a port of the pod, with a client's address. It implements
// ingress.UDPDialer.
func (s *Client) DialUDP(from netip.AddrPort, port int) (net.Conn, error) {
	p := s.current()
	if p == nil {
		return nil, errRestarting
	}
	here, away, err := stackproto.SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	if err := p.channel.Send(stackproto.Message{Verb: stackproto.VerbDatagrams, From: from, Port: port}, away); err != nil {
		here.Close()
		return nil, err
	}
	return stackproto.DatagramConn{Conn: here}, nil
}
