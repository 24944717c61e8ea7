// Package ingress connects the host's ports to a pod: connections and datagrams that arrive at a
// socket in the host's network go on to the same pod's ports, from inside its network and, where
// possible, with the address of the client.
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

// UDPDialer connects to the pod for UDP; for TCP it must also be a NetnsDialer, whose loop proxies
// connections, or a Forwarder. Each call is for a port of the pod and for a client, whose address the
// pod sees if possible.
type UDPDialer interface {
	DialUDP(client netip.AddrPort, port int) (net.Conn, error)
}

// Forwarder is a UDPDialer that takes over whole connections.
type Forwarder interface {
	UDPDialer

	// Forward connects, copies in both directions until both sides have ended, and closes the
	// client's connection. If the pod refuses, the client gets a reset. The connection also ends
	// when ctx is done or the client's side is closed meanwhile.
	Forward(ctx context.Context, client *net.TCPConn, from netip.AddrPort, port int)
}

// Server forwards the traffic of one pod's ports.
type Server struct {
	dial   UDPDialer
	ports  map[string]portServer // by the names of their sockets
	all    sync.WaitGroup
	ctx    context.Context // ends with Close
	cancel func()

	mu         sync.Mutex
	active     int                   // connections and UDP flows
	limit      int                   // maximum of active
	conns      map[closer]clientInfo // what Close ends
	filter     Filter                // nil: all clients may connect
	closed     bool
	lastLogged time.Time // when the log last reported a lack of descriptors

	// For the thread of the NetnsDialer's loop, by the client's descriptor.
	proxied map[int]proxied
}

// proxied is a connection of a NetnsDialer's loop.
type proxied struct {
	of  clientInfo
	end func()
}

// closer is the resource of a connection or a flow.
type closer interface{ Close() error }

// portServer serves one socket.
type portServer interface {
	pause() // from its return until resume it accepts nothing
	resume()
	close()
	remove() // close, which leaves nobody waiting if possible
}

// New returns a server without ports.
func New(dial UDPDialer) *Server {
	s := &Server{dial: dial, ports: map[string]portServer{}, conns: map[closer]clientInfo{}, limit: descriptorLimit(), proxied: map[int]proxied{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Limits of one pod: clients are untrusted and must not exhaust the process's descriptors or its
// memory.
const (
	maxActive = 8192
	reserve   = 256 // descriptors that are left to the rest of the process
	perActive = 4   // descriptors: two sockets and, while it streams, a pipe
)

// descriptorLimit returns the number of connections and flows that this process has descriptors
// for.
func descriptorLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return reserve / perActive
	}
	return max(16, min(maxActive, (int(min(limit.Cur, 1<<20))-reserve)/perActive))
}

// Add serves a socket that hostport.Bind has made, and Listen if it is TCP. Its traffic goes to a
// port of the pod. The server identifies it by the file's name. The caller keeps the socket and may
// close it.
func (s *Server) Add(file *os.File, protocol string, to int) error {
	return s.add(file, protocol, target{port: to})
}

// add is Add for any target.
func (s *Server) add(file *os.File, protocol string, to target) error {
	var p portServer
	var err error
	if protocol == "udp" {
		p, err = s.addUDP(file, to)
	} else if inside, ok := s.dial.(*NetnsDialer); ok {
		p, err = s.addLoopPort(file, to, inside)
	} else if by, ok := s.dial.(Forwarder); ok {
		p, err = s.addTCP(file, to, by)
	} else {
		err = fmt.Errorf("a %T accepts no connections", s.dial)
	}
	if err != nil {
		return fmt.Errorf("serve port %s: %w", file.Name(), err)
	}
	s.ports[file.Name()] = p
	return nil
}

// Remove ends an Add. Its connections continue, with those that wait to be accepted; its UDP flows, whose answers need the socket, end.
// It must not be called during a Pause.
func (s *Server) Remove(file *os.File) {
	if p := s.ports[file.Name()]; p != nil {
		p.remove()
		delete(s.ports, file.Name())
	}
}

// Pause stops accepting traffic, which waits in the sockets. It fails without any effect while
// there are connections or flows. Calls of Pause and Resume must alternate.
func (s *Server) Pause() bool {
	for _, p := range s.ports {
		p.pause()
	}
	s.mu.Lock()
	idle := s.active == 0
	s.mu.Unlock()
	if !idle {
		s.Resume()
	}
	return idle
}

// Resume ends a Pause.
func (s *Server) Resume() {
	for _, p := range s.ports {
		p.resume()
	}
}

// Close ends every connection and returns when nothing of the server is left. It must not be called
// during a Pause. It may be called again.
func (s *Server) Close() {
	for _, p := range s.ports {
		p.close()
	}
	clear(s.ports) // other files may get their descriptor numbers from now on
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	if d, ok := s.dial.(*NetnsDialer); ok {
		_ = d.loop.Do(func() error { // a loop that has ended has no connections
			for _, c := range s.proxied {
				c.end()
			}
			return nil
		})
	}
	s.cancel()
	s.all.Wait()
}

// acquire counts a connection; false if the server is closed, the client may not connect, or there are
// too many.
func (s *Server) acquire(client clientInfo, ends ...closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.allowsLocked(client) {
		return false
	}
	if s.active >= s.limit {
		s.logErrorLocked(fmt.Errorf("the limit of %d connections is reached: others are refused", s.active))
		return false
	}
	s.active++
	for _, c := range ends {
		s.conns[c] = client
	}
	return true
}

func (s *Server) release(ends ...closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	for _, c := range ends {
		delete(s.conns, c)
	}
}

// logError logs an error, rate-limited.
func (s *Server) logError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logErrorLocked(err)
}

// logErrorLocked is logError for callers that hold mu.
func (s *Server) logErrorLocked(err error) {
	if now := time.Now(); now.Sub(s.lastLogged) > logInterval {
		s.lastLogged = now
		fmt.Fprintln(os.Stderr, "published port:", err)
	}
}

const (
	logInterval = time.Minute
	acceptRetry = 100 * time.Millisecond // after a lack of descriptors
)

// pauser pauses the loop that reads from a port's socket.
type pauser struct {
	setDeadline     func(time.Time) error // of the socket; one in the past ends the loop's current call
	paused, resumed chan struct{}
}

func newPauser(setDeadline func(time.Time) error) pauser {
	return pauser{setDeadline, make(chan struct{}), make(chan struct{})}
}

func (p *pauser) pause() {
	_ = p.setDeadline(time.Unix(0, 1))
	<-p.paused
}

func (p *pauser) resume() {
	_ = p.setDeadline(time.Time{})
	p.resumed <- struct{}{}
}

// wait is called by the loop when the deadline has passed. It returns after resume.
func (p *pauser) wait() {
	p.paused <- struct{}{}
	<-p.resumed
}

// tcpPort accepts connections.
type tcpPort struct {
	pauser
	listener *net.TCPListener
}

func (s *Server) addTCP(file *os.File, to target, by Forwarder) (portServer, error) {
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("it is a %T", l)
	}
	p := &tcpPort{newPauser(t.SetDeadline), t}
	s.all.Go(func() { s.accept(p, to, by) })
	return p, nil
}

func (p *tcpPort) close()  { p.listener.Close() }
func (p *tcpPort) remove() { p.close() } // fallback of a user-space stack: who waits is reset

func (s *Server) accept(p *tcpPort, to target, by Forwarder) {
	for {
		conn, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.wait()
		case err != nil:
			s.logError(err)
			time.Sleep(acceptRetry)
		default:
			from := unmapped(conn.RemoteAddr().(*net.TCPAddr).AddrPort()) // a listener of TCP has no others
			if !s.acquire(to.infoOf(from.Addr(), "TCP"), conn) {
				relay.Reset(conn)
				continue
			}
			s.all.Go(func() {
				defer s.release(conn)
				_ = conn.SetKeepAliveConfig(keepalive)
				to.forward(s.ctx, conn, from, by)
			})
		}
	}
}

// keepalive detects clients that have disappeared without closing.
var keepalive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 30 * time.Second, Count: 4}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
