package page

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// limited has so many connections at once. For another one it closes the one without a
// stream that was unused for longest: whoever only keeps connections open shuts nobody out.
type limited struct {
	net.Listener
	mu    sync.Mutex
	conns []*counted // those that were used last come last
}

// Accept gives the next connection.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	own := &counted{Conn: c, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxConns {
		if i := slices.IndexFunc(l.conns, func(c *counted) bool { return c.streams == 0 }); i >= 0 {
			l.conns[i].Conn.Close()
			l.conns = slices.Delete(l.conns, i, i+1)
		}
	}
	l.conns = append(l.conns, own)
	return own, nil
}

type counted struct {
	net.Conn
	of      *limited
	streams int
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	c.of.conns = slices.DeleteFunc(c.of.conns, func(o *counted) bool { return o == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// used takes note that a request begins.
func used(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*counted)
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

// keep keeps a request's connection from being closed for another one, until it is released.
func keep(ctx context.Context) (release func()) {
	c, ok := ctx.Value(connKey{}).(*counted)
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
