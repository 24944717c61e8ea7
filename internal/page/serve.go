package page

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
	maxConns  = 64 // a browser makes six; there are fewer streams
	maxHeader = 16 << 10
	idleTime  = time.Minute     // without a request
	endTime   = 2 * time.Second // for what is under way when the command ends
)

// Serve answers on a listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.Stall,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         used,
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do wrong is their affair
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(&limited{Listener: l}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Streams end with ctx; who only keeps a connection is not waited for.
		late, cancel := context.WithTimeout(context.Background(), endTime)
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
