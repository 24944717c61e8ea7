// Package webui is the page of `podrun ui`: its HTML, styles and scripts, as they are sent,
// and the handlers that send them and what they show.
//
// The page only looks: nothing can be changed through it. What it shows comes from a
// Source; this room knows neither pods nor where they are kept, only things with a key
// and a form in JSON, what they use, and lines of logs.
//
//	GET /              the page, and its parts; there is nothing secret in them
//	GET /api/state     a stream: all things, then those that change, and what is used
//	GET /api/logs      a stream: lines of a pod's logs, as they are written
//
// A stream is one of Server-Sent Events, each with an object in JSON. What is below /api/
// takes the token: see guard.go.
package webui

import (
	"context"
	"embed"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"time"
)

// Source is where what is shown comes from. It is asked by several at once.
type Source interface {
	// Watch tells of all things there are, and again when one has changed, until ctx
	// ends. problem is what stood in the way, for people.
	Watch(ctx context.Context, seen func(all []Object, problem string))
	// Use is what is used now by what runs, since it was asked the last time.
	Use() ([]Usage, error)
	// Logs gives lines that are there, and those that come, until there will be no more
	// or ctx ends. What stands in the way is an error for people.
	Logs(ctx context.Context, of LogRequest, line func(Line)) error
}

// Object is something that is shown: a pod, or an event.
type Object struct {
	Kind string // "pods" or "events"
	Key  string // NAMESPACE/NAME
	JSON []byte
}

// Usage is what a pod uses.
type Usage struct {
	Key    string // NAMESPACE/NAME
	CPU    *int64 // thousandths of a processor; nil: not known
	Memory *int64 // bytes; nil: not known
	Detail any    // as JSON has it
}

// LogRequest says which log is meant.
type LogRequest struct {
	Namespace, Pod string
	Container      string // "" are all
	Previous       bool   // the instance before the current one
	Tail           int    // only so many of the lines that are there
}

// Line is a line of a log, made harmless.
type Line struct {
	Container, Time, Stream, Text string
}

// Server answers the page's requests.
type Server struct {
	Source Source
	Token  string        // what requests of the API have to show
	Host   string        // the machine's name
	Every  time.Duration // how often it is looked what is used
	// Stall is how long a client may take to say what it wants, and to read what it was sent.
	Stall time.Duration

	hub     *hub
	streams chan struct{} // has room for as many as may be open
}

const maxStreams = 32

//go:embed web
var web embed.FS

// Handler answers requests. It is called once.
func (s *Server) Handler() http.Handler {
	s.hub = &hub{source: s.Source, every: s.Every, host: s.Host, begun: time.Now()}
	s.streams = make(chan struct{}, maxStreams)
	mux := http.NewServeMux()
	mux.HandleFunc("/", serveFile)
	mux.HandleFunc("/api/state", s.stream(s.state))
	mux.HandleFunc("/api/logs", s.stream(s.logs))
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		httpError(w, http.StatusNotFound, "there is no such thing here")
	})
	return s.authorize(mux)
}

// contentTypes are those of the page's files, whatever the machine's table says.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// serveFile sends a part of the page.
func serveFile(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	if name == "" {
		name = "index.html"
	}
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		httpError(w, http.StatusNotFound, "there is no such thing here")
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	w.Write(text)
}

const (
	maxConns        = 64 // a browser makes six; there are fewer streams
	maxHeader       = 16 << 10
	idleTimeout     = time.Minute     // without a request
	shutdownTimeout = 2 * time.Second // for what is under way when the command ends
)

// Serve answers on a listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.Stall,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         markUsed,
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do wrong is their affair
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(&limitListener{Listener: l}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Streams end with ctx; who only keeps a connection is not waited for.
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
