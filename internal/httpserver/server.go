// Package httpserver serves HTTP to clients that may be slow, silent or too many: the web page and the metrics.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const (
	MaxConns        = 64 // a browser makes six; there are fewer streams
	maxHeader       = 16 << 10
	idleTimeout     = time.Minute     // without a request
	shutdownTimeout = 2 * time.Second // for requests in progress when the command ends
)

// Serve is ServeTLS without TLS.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, stall time.Duration) error {
	return ServeTLS(ctx, l, nil, handler, stall)
}

// ServeTLS serves HTTP/1.1 on a listener until ctx ends, and closes it. stall is how long a client may take to send the
// head of its request, and to read the response; a stream extends the latter with every write. config is nil for plain HTTP.
func ServeTLS(ctx context.Context, l net.Listener, config *tls.Config, handler http.Handler, stall time.Duration) error {
	server := &http.Server{
		TLSConfig:         config,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // a stream is a whole connection
		Handler:           handler,
		ReadHeaderTimeout: stall,
		WriteTimeout:      stall,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         markUsed,
		ErrorLog:          log.New(io.Discard, "", 0), // errors of clients are not logged
	}
	ended := make(chan error, 1)
	go func() {
		if config != nil {
			ended <- server.ServeTLS(&limitListener{Listener: l}, "", "")
		} else {
			ended <- server.Serve(&limitListener{Listener: l})
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Streams end with ctx; Shutdown does not wait for idle connections.
		late, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if server.Shutdown(late) != nil {
			server.Close()
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
}
