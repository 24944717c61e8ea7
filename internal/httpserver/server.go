// Package httpserver serves HTTP to clients that may be slow, silent or too many: the web page and the metrics.
package httpserver

import (
	"context"
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

// Serve serves on a listener until ctx ends, and closes it. stall is how long a client may take to send the
// head of its request, and to read the response; a stream extends the latter with every write.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, stall time.Duration) error {
	server := &http.Server{
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
	go func() { ended <- server.Serve(&limitListener{Listener: l}) }()
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
