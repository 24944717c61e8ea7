package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// limitListener limits the number of connections. For a new one it closes the connection without a
// stream that was idle for longest, so that a client which only keeps connections open blocks no
// other.
type limitListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*limitedConn // the last used come last
}

// Accept returns the next connection.
func (l *limitListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	limited := &limitedConn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= MaxConns {
		if i := slices.IndexFunc(l.conns, func(c *limitedConn) bool { return c.streams == 0 }); i >= 0 {
			l.conns[i].Conn.Close()
			l.conns = slices.Delete(l.conns, i, i+1)
		}
	}
	l.conns = append(l.conns, limited)
	return limited, nil
}

type limitedConn struct {
	net.Conn
	of      *limitListener
	streams int
}

func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	c.of.conns = slices.DeleteFunc(c.of.conns, func(o *limitedConn) bool { return o == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// limited returns the limited connection below a connection.
func limited(conn net.Conn) (*limitedConn, bool) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(*limitedConn)
	return c, ok
}

// markUsed records that a request begins.
func markUsed(conn net.Conn, state http.ConnState) {
	c, ok := limited(conn)
	if !ok || state != http.StateActive {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if i := slices.Index(c.of.conns, c); i >= 0 {
		c.of.conns = append(slices.Delete(c.of.conns, i, i+1), c)
	}
}

type connKey struct{}

// HoldConn protects a request's connection from being closed for another one, until it is released.
func HoldConn(ctx context.Context) (release func()) {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	c, ok := limited(conn)
	if !ok { // of another server
		return func() {}
	}
	count := func(n int) {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.streams += n
	}
	count(1)
	return func() { count(-1) }
}
