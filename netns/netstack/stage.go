package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/stackproc"
)

// Stages are stackproc.Stage: the stack as a process of its own, which ends with the channel
// to who has begun it.
func Stages() map[string]func([]string) int {
	return map[string]func([]string) int{stackproc.Stage: serve}
}

func serve([]string) int {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData("podrun-netstack\x00"))), 0, 0, 0)
	channel, err := stackproc.Inherited()
	if err != nil {
		fmt.Fprintln(os.Stderr, "podrun:", err)
		return 1
	}
	s, err := begin(channel)
	answer := stackproc.Message{Verb: stackproc.Begun}
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
		case stackproc.Connection:
			err = s.carryFor(m, files)
		case stackproc.Datagrams:
			err = s.converseFor(m, files)
		case stackproc.Pause:
			paused = paused || s.Pause()
			err = channel.Send(stackproc.Message{Verb: stackproc.Paused, Done: paused})
		case stackproc.Resume:
			if paused {
				s.Resume()
			}
			paused = false
		}
		stackproc.CloseAll(files)
		if err != nil {
			fmt.Fprintln(os.Stderr, "the pod's network in user space:", err)
		}
	}
}

// begin waits for the first message.
func begin(channel *stackproc.Channel) (*Stack, error) {
	m, files, err := channel.Receive()
	if err != nil {
		return nil, err
	}
	if m.Verb != stackproc.Begin || len(files) != 1 {
		stackproc.CloseAll(files)
		return nil, fmt.Errorf("begin with %q and %d files", m.Verb, len(files))
	}
	c := egress.Config{Pool: m.Config.Pool, Slot: m.Config.Slot, HostLoopback: m.Config.HostLoopback}
	if m.Config.Names {
		c.Names = resolver{channel}
	}
	return Serve(c, netns.Wires{netns.WirePackets: files[0]})
}

var errFiles = errors.New("a message without its files")

// carryFor carries a client's connection for another process, as long as that wants it.
func (s *Stack) carryFor(m stackproc.Message, files []*os.File) error {
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
	life, err := stackproc.SocketOf(files[1])
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
		s.Carry(ctx, client, m.From, m.Port)
	}()
	return nil
}

// converseFor passes on a client's datagrams for another process.
func (s *Stack) converseFor(m stackproc.Message, files []*os.File) error {
	if len(files) != 1 {
		return errFiles
	}
	socket, err := stackproc.SocketOf(files[0])
	if err != nil {
		return err
	}
	out := stackproc.Conversation{Conn: socket}
	in, err := s.DialUDP(m.From, m.Port)
	if err == nil && !s.begin(in, out) {
		in.Close()
		err = errors.New("there are too many conversations")
	}
	if err != nil {
		out.Close()
		return err
	}
	s.over.Go(func() {
		defer s.end(in, out)
		converse(in, out)
	})
	return nil
}

// resolver asks the other process.
type resolver struct{ channel *stackproc.Channel }

// answerTime is longer than a resolver takes.
const answerTime = 30 * time.Second

func (r resolver) ask(verb string, kind int) (*net.UnixConn, error) {
	here, away, err := stackproc.Pair(kind)
	if err != nil {
		return nil, err
	}
	defer unix.Close(away)
	if err := r.channel.Send(stackproc.Message{Verb: verb}, away); err != nil {
		here.Close()
		return nil, err
	}
	return here, nil
}

func (r resolver) Answer(query []byte) []byte {
	conn, err := r.ask(stackproc.Query, unix.SOCK_SEQPACKET)
	if err != nil {
		return nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTime))
	c := stackproc.Conversation{Conn: conn}
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

func (r resolver) Converse(c net.Conn) {
	defer c.Close()
	conn, err := r.ask(stackproc.Queries, unix.SOCK_STREAM)
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
