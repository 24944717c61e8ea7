package webui

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// limitListener has so many connections at once. For another one it closes the one without a
// stream that was unused for longest: whoever only keeps connections open shuts nobody out.
type limitListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*limitedConn // those that were used last come last
}

// Accept gives the next connection.
func (l *limitListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	own := &limitedConn{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxConns {
		if i := slices.IndexFunc(l.conns, func(c *limitedConn) bool { return c.streams == 0 }); i >= 0 {
			l.conns[i].Conn.Close()
			l.conns = slices.Delete(l.conns, i, i+1)
		}
	}
	l.conns = append(l.conns, own)
	return own, nil
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

// markUsed takes note that a request begins.
func markUsed(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*limitedConn)
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

// holdConn keeps a request's connection from being closed for another one, until it is released.
func holdConn(ctx context.Context) (release func()) {
	c, ok := ctx.Value(connKey{}).(*limitedConn)
	if !ok { // another server's
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
