// Package ingress lets the host's ports reach a pod: connections and datagrams that come
// to a socket in the host's network go on to the same pod's ports, from inside its
// network and, where that can be, from the address of the client.
package ingress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// Dialer makes the second half of the way: it is an Inside or a Carrier. Each call is for a
// port of the pod and for a client, whose address is to be seen there if it can be.
type Dialer interface {
	DialUDP(client netip.AddrPort, port int) (net.Conn, error)
}

// Carrier is a Dialer that is given one connection after the other.
type Carrier interface {
	Dialer

	// Carry connects, passes on what both sides say until both have ended, and closes the
	// client's. A connection that is refused resets it. When ctx ends, or the client's is
	// closed meanwhile, so does the connection.
	Carry(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int)
}

// Server passes on what comes to the ports of one pod.
type Server struct {
	dial   Dialer
	ports  map[string]port // by the names of their sockets
	all    sync.WaitGroup
	ctx    context.Context // ends with Close
	cancel func()

	mu     sync.Mutex
	active int          // connections, and flows of datagrams
	max    int          // of those
	conns  map[end]bool // what Close ends
	closed bool
	failed time.Time // when the log was told last that there is no descriptor

	// The loop's of an Inside: what ends each connection, by the client's descriptor.
	carried map[int]func()
}

// end is what a connection or a flow holds.
type end interface{ Close() error }

// port takes what comes to one socket.
type port interface {
	halt() // returns when it takes nothing any more, until proceed
	proceed()
	close()
}

// New makes a server without ports.
func New(dial Dialer) *Server {
	s := &Server{dial: dial, ports: map[string]port{}, conns: map[end]bool{}, max: bound(), carried: map[int]func(){}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Bounds of one pod: clients are strangers, and must not cost the process its descriptors
// or its memory.
const (
	maxActive = 8192
	reserve   = 256 // descriptors that are left to the rest of the process
	perActive = 4   // descriptors: two sockets and, while it streams, a pipe
)

// bound is how many connections and flows this process has descriptors for.
func bound() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return reserve / perActive
	}
	return max(16, min(maxActive, (int(min(limit.Cur, 1<<20))-reserve)/perActive))
}

// Add serves a socket that hostport.Bind has made, listened to if it is TCP: what comes
// goes to a port of the pod. The server knows it by the file's name. The socket stays the
// caller's, who may close it.
func (s *Server) Add(file *os.File, protocol string, to int) error {
	return s.serve(file, protocol, target{port: to})
}

// serve is Add for any target.
func (s *Server) serve(file *os.File, protocol string, to target) error {
	var p port
	var err error
	if protocol == "udp" {
		p, err = s.addUDP(file, to)
	} else if inside, ok := s.dial.(*Inside); ok {
		p, err = s.addDirect(file, to, inside)
	} else if by, ok := s.dial.(Carrier); ok {
		p, err = s.addTCP(file, to, by)
	} else {
		err = fmt.Errorf("a %T takes no connections", s.dial)
	}
	if err != nil {
		return fmt.Errorf("serve port %s: %w", file.Name(), err)
	}
	s.ports[file.Name()] = p
	return nil
}

// Remove ends an Add. Connections that have come by it go on; flows of datagrams, whose answers
// leave by the socket, end. It must not be called in a pause.
func (s *Server) Remove(file *os.File) {
	if p := s.ports[file.Name()]; p != nil {
		p.close()
		delete(s.ports, file.Name())
	}
}

// Pause stops taking what comes: it waits in the sockets. It fails, without any effect,
// while there are connections or flows. Calls of Pause and Resume must alternate.
func (s *Server) Pause() bool {
	for _, p := range s.ports {
		p.halt()
	}
	s.mu.Lock()
	idle := s.active == 0
	s.mu.Unlock()
	if !idle {
		s.Resume()
	}
	return idle
}

// Resume ends a pause.
func (s *Server) Resume() {
	for _, p := range s.ports {
		p.proceed()
	}
}

// Close ends every connection, and returns when nothing of the server is left. It must
// not be called in a pause. It may be called again.
func (s *Server) Close() {
	for _, p := range s.ports {
		p.close()
	}
	clear(s.ports) // whose descriptors may be others' from now on
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	if d, ok := s.dial.(*Inside); ok {
		_ = d.loop.Do(func() error { // a loop that has ended carries nothing
			for _, end := range s.carried {
				end()
			}
			return nil
		})
	}
	s.cancel()
	s.all.Wait()
}

// enter counts a connection; false if none is taken any more, or there are too many.
func (s *Server) enter(ends ...end) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.active >= s.max {
		s.say(fmt.Errorf("there are %d connections, as many as may be: others are refused", s.active))
		return false
	}
	s.active++
	for _, c := range ends {
		s.conns[c] = true
	}
	return true
}

func (s *Server) leave(ends ...end) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	for _, c := range ends {
		delete(s.conns, c)
	}
}

// tell writes to the log what could not be done, at most once in a while.
func (s *Server) tell(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(err)
}

// say is tell for who holds mu.
func (s *Server) say(err error) {
	if now := time.Now(); now.Sub(s.failed) > tellAfter {
		s.failed = now
		fmt.Fprintln(os.Stderr, "published port:", err)
	}
}

const (
	tellAfter = time.Minute
	retry     = 100 * time.Millisecond // where there is no descriptor for a connection
)

// tcpPort accepts connections.
type tcpPort struct {
	listener        *net.TCPListener
	paused, resumed chan struct{}
}

func (s *Server) addTCP(file *os.File, to target, by Carrier) (port, error) {
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("it is a %T", l)
	}
	p := &tcpPort{t, make(chan struct{}), make(chan struct{})}
	s.all.Go(func() { s.accept(p, to, by) })
	return p, nil
}

func (p *tcpPort) halt() {
	p.listener.SetDeadline(time.Unix(0, 1))
	<-p.paused
}

func (p *tcpPort) proceed() {
	p.listener.SetDeadline(time.Time{})
	p.resumed <- struct{}{}
}

func (p *tcpPort) close() { p.listener.Close() }

func (s *Server) accept(p *tcpPort, to target, by Carrier) {
	for {
		client, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.paused <- struct{}{}
			<-p.resumed
		case err != nil:
			s.tell(err)
			time.Sleep(retry)
		case !s.enter(client):
			relay.Reset(client)
		default:
			s.all.Go(func() {
				defer s.leave(client)
				s.pass(client, to, by)
			})
		}
	}
}

// aliveness finds clients that have gone without a word.
var aliveness = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 30 * time.Second, Count: 4}

// pass is one connection's life.
func (s *Server) pass(client *net.TCPConn, to target, by Carrier) {
	addr, ok := client.RemoteAddr().(*net.TCPAddr)
	if !ok {
		client.Close()
		return
	}
	_ = client.SetKeepAliveConfig(aliveness)
	to.carry(s.ctx, client, unmapped(addr.AddrPort()), by)
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
