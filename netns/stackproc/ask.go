package stackproc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// hear takes what a process says until it has ended.
func (s *Stack) hear(p *process) {
	defer close(p.answers)
	for {
		m, files, err := p.channel.Receive()
		if err != nil {
			return
		}
		switch m.Verb {
		case Begun, Paused:
			p.answers <- m
		case Query, Queries:
			if len(files) == 1 && s.config.Names != nil {
				s.serve(m.Verb, files[0])
			}
		}
		CloseAll(files)
	}
}

// serve has the resolver answer. What it serves ends with the process that asks.
func (s *Stack) serve(verb string, file *os.File) {
	conn, err := SocketOf(file)
	if err != nil {
		return
	}
	if verb == Queries {
		s.over.Go(func() { s.config.Names.Converse(conn) })
		return
	}
	s.over.Go(func() {
		defer conn.Close()
		asked := Conversation{conn}
		held := datagrams.Get().(*[maxDatagram]byte)
		defer datagrams.Put(held)
		n, err := asked.Read(held[:])
		if err != nil {
			return
		}
		if a := s.config.Names.Answer(held[:n]); a != nil {
			_, _ = asked.Write(a) // who has asked may have gone
		}
	})
}

// Carry connects to a port of the pod in the name of a client, and passes on what both say,
// until both have ended or ctx has. It is ingress.Dialer's.
func (s *Stack) Carry(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int) {
	life, err := s.hand(client, from, port)
	if err != nil {
		relay.Reset(client)
		return
	}
	client.Close() // the other process has it
	stop := context.AfterFunc(ctx, func() { life.Close() })
	defer stop()
	defer life.Close()
	_, _ = life.Read(make([]byte, 1)) // it ends, and says nothing
}

// hand gives a client's connection away.
func (s *Stack) hand(client *net.TCPConn, from netip.AddrPort, port int) (life *net.UnixConn, err error) {
	p := s.current()
	if p == nil {
		return nil, errNobody
	}
	raw, err := client.SyscallConn()
	if err != nil {
		return nil, err
	}
	life, away, err := Pair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	cerr := raw.Control(func(fd uintptr) {
		err = p.channel.Send(Message{Verb: Connection, From: from, Port: port}, int(fd), away)
	})
	if err = errors.Join(err, cerr); err != nil {
		life.Close()
		return nil, err
	}
	return life, nil
}

var errNobody = errors.New("the pod's network in user space is being begun again")

// DialUDP begins a conversation with a port of the pod in the name of a client. It is
// ingress.Dialer's.
func (s *Stack) DialUDP(from netip.AddrPort, port int) (net.Conn, error) {
	p := s.current()
	if p == nil {
		return nil, errNobody
	}
	here, away, err := Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	if err := p.channel.Send(Message{Verb: Datagrams, From: from, Port: port}, away); err != nil {
		here.Close()
		return nil, err
	}
	return Conversation{here}, nil
}
