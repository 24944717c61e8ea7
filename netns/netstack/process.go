package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
)

// EntryPoints returns the re-exec entry point protocol.EntryNetstack: the stack as a process of its own,
// which exits when the channel to its parent closes.
func EntryPoints() map[string]func([]string) int {
	return map[string]func([]string) int{protocol.EntryNetstack: serve}
}

func serve([]string) int {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData("podrun-netstack\x00"))), 0, 0, 0)
	channel, err := stackproto.InheritedChannel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "podrun:", err)
		return 1
	}
	s, err := receiveConfig(channel)
	answer := stackproto.Message{Verb: stackproto.VerbStarted}
	if err != nil {
		answer.Error = err.Error()
	}
	if err := errors.Join(err, channel.Send(answer)); err != nil {
		return 1
	}
	for paused := false; ; {
		m, files, err := channel.Receive()
		if err != nil {
			return 0
		}
		switch m.Verb {
		case stackproto.VerbConnection:
			err = s.forwardFor(m, files)
		case stackproto.VerbDatagrams:
			err = s.datagramsFor(m, files)
		case stackproto.VerbPause:
			paused = paused || s.Pause()
			err = channel.Send(stackproto.Message{Verb: stackproto.VerbPaused, Done: paused})
		case stackproto.VerbResume:
			if paused {
				s.Resume()
			}
			paused = false
		}
		stackproto.CloseAll(files)
		if err != nil {
			fmt.Fprintln(os.Stderr, "the pod's network in user space:", err)
		}
	}
}

// receiveConfig waits for the first message.
func receiveConfig(channel *stackproto.Channel) (*Stack, error) {
	m, files, err := channel.Receive()
	if err != nil {
		return nil, err
	}
	if m.Verb != stackproto.VerbStart || len(files) != 1 {
		stackproto.CloseAll(files)
		return nil, fmt.Errorf("begin with %q and %d files", m.Verb, len(files))
	}
	c := egress.Config{Pool: m.Config.Pool, Slot: m.Config.Slot, HostLoopback: m.Config.HostLoopback}
	if m.Config.Names {
		c.Names = remoteResolver{channel}
	}
	if m.Config.Endpoints {
		c.Endpoint = remoteResolver{channel}.endpoint
	}
	return serveStack(c, router.TrafficFDs{router.TrafficPackets: files[0]})
}

var errFiles = errors.New("a message without its files")

// forwardFor forwards a client's connection for another process, as long as that process keeps the
// life socket open.
func (s *Stack) forwardFor(m stackproto.Message, files []*os.File) error {
	if len(files) != 2 {
		return errFiles
	}
	conn, err := net.FileConn(files[0])
	if err != nil {
		return err
	}
	client, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return fmt.Errorf("a client's connection is a %T", conn)
	}
	life, err := stackproto.SocketOf(files[1])
	if err != nil {
		client.Close()
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = life.Read(make([]byte, 1)) // until its end
		cancel()
	}()
	go func() {
		defer life.Close()
		s.Forward(ctx, client, m.From, m.Port)
	}()
	return nil
}

// datagramsFor forwards a client's datagrams for another process.
func (s *Stack) datagramsFor(m stackproto.Message, files []*os.File) error {
	if len(files) != 1 {
		return errFiles
	}
	socket, err := stackproto.SocketOf(files[0])
	if err != nil {
		return err
	}
	out := stackproto.DatagramConn{Conn: socket}
	in, err := s.DialUDP(m.From, m.Port)
	if err == nil && !s.acquire(in, out) {
		in.Close()
		err = errors.New("there are too many UDP flows")
	}
	if err != nil {
		out.Close()
		return err
	}
	s.running.Go(func() {
		defer s.release(in, out)
		proxyDatagrams(in, out)
	})
	return nil
}

// remoteResolver sends queries for names and Services to the other process.
type remoteResolver struct{ channel *stackproto.Channel }

// replyTimeout is longer than a resolver takes.
const replyTimeout = 30 * time.Second

func (r remoteResolver) open(verb string, kind int) (*net.UnixConn, error) {
	return r.send(stackproto.Message{Verb: verb}, kind)
}

// send sends a message with one end of a new pair of sockets, and returns the other.
func (r remoteResolver) send(m stackproto.Message, kind int) (*net.UnixConn, error) {
	here, away, err := stackproto.SocketPair(kind)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	if err := r.channel.Send(m, away); err != nil {
		here.Close()
		return nil, err
	}
	return here, nil
}

// endpoint returns an endpoint of a Service (egress.Config).
func (r remoteResolver) endpoint(protocol string, dst netip.AddrPort) (to netip.AddrPort, ok bool) {
	conn, err := r.send(stackproto.Message{Verb: stackproto.VerbEndpoint, Proto: protocol, To: dst}, unix.SOCK_SEQPACKET)
	if err != nil {
		return to, false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(replyTimeout))
	b := make([]byte, 64)
	n, err := conn.Read(b)
	if err != nil {
		return to, false
	}
	to, err = netip.ParseAddrPort(string(b[:n]))
	return to, err == nil
}

func (r remoteResolver) Answer(query []byte) []byte {
	conn, err := r.open(stackproto.VerbQuery, unix.SOCK_SEQPACKET)
	if err != nil {
		return nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(replyTimeout))
	c := stackproto.DatagramConn{Conn: conn}
	if _, err := c.Write(query); err != nil {
		return nil
	}
	held := datagrams.Get().(*[maxDatagram]byte)
	defer datagrams.Put(held)
	n, err := c.Read(held[:])
	if err != nil {
		return nil
	}
	return append([]byte(nil), held[:n]...)
}

func (r remoteResolver) ServeConn(c net.Conn) {
	defer c.Close()
	conn, err := r.open(stackproto.VerbQueryConn, unix.SOCK_STREAM)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(conn, c)
		_ = conn.CloseWrite()
	}()
	_, _ = io.Copy(c, conn)
	conn.Close()
	c.Close()
	<-done
}
