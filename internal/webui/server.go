// Package webui is the page of `podrun ui`: its HTML, styles and scripts, and the handlers that
// serve them and their data.
//
// The page is read-only: nothing can be changed through it. Its data comes from a Source. This
// package does not depend on pods or on how they are stored; it has only objects with a key and a
// JSON form, their usage, and lines of logs.
//
//	GET /              the page, and its parts; they contain no secret
//	GET /api/state     a stream: all objects, then changed ones, and usage
//	GET /api/logs      a stream: lines of a pod's logs, as they are written
//	GET /api/yaml      an object as YAML
//
// A stream consists of Server-Sent Events, each with a JSON object. Everything below /api/ requires
// the token: see auth.go.
package webui

import (
	"context"
	"embed"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/podrun/podrun/internal/httpserver"
)

// Source is the source of the page's data. Several goroutines use it at once.
type Source interface {
	// Watch calls onChange with all objects, and again after every change, until ctx ends. problem is
	// an error text for users.
	Watch(ctx context.Context, onChange func(all []Object, problem string))
	// Use returns the usage of what runs, since the last call.
	Use() ([]Usage, error)
	// Logs passes on the existing lines, and new ones, until there will be no more or ctx ends. The
	// error is for users.
	Logs(ctx context.Context, of LogRequest, line func(Line)) error
	// YAML returns an object as YAML. The error is for users.
	YAML(kind, key string) ([]byte, error)
}

// Object is a displayed object: a pod, an event, a row of a table.
type Object struct {
	Kind string // the history of usage belongs to the kind "pods"
	Key  string // NAMESPACE/NAME
	JSON []byte
}

// Usage is the usage of a pod.
type Usage struct {
	Key    string // NAMESPACE/NAME
	CPU    *int64 // thousandths of a processor; nil: not known
	Memory *int64 // bytes; nil: not known
	Detail any    // is encoded as JSON
}

// LogRequest selects a log.
type LogRequest struct {
	Namespace, Pod string
	Container      string // "" means all
	Previous       bool   // the instance before the current one
	Tail           int    // number of existing lines to return
}

// Line is a line of a log, escaped.
type Line struct {
	Container, Time, Stream, Text string
}

// Server serves the page.
type Server struct {
	Source Source
	Token  string           // requests of the API must carry it
	Host   string           // the machine's name
	Every  time.Duration    // interval between samples of usage
	Now    func() time.Time // the clock
	// Stall is how long a client may take to send its request, and to read a response.
	Stall time.Duration

	hub     *hub
	streams chan struct{} // its capacity is the maximum number of open streams
}

const maxStreams = 32

//go:embed web
var web embed.FS

// Handler returns the handler of all requests. It is called once.
func (s *Server) Handler() http.Handler {
	s.hub = &hub{source: s.Source, every: s.Every, host: s.Host, now: s.Now, begun: s.Now(), membership: map[string]int{}}
	s.streams = make(chan struct{}, maxStreams)
	mux := http.NewServeMux()
	mux.HandleFunc("/", serveFile)
	mux.HandleFunc("/api/state", s.stream(s.state))
	mux.HandleFunc("/api/logs", s.stream(s.logs))
	mux.HandleFunc("/api/yaml", s.yaml)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		httpError(w, http.StatusNotFound, "not found")
	})
	return s.authorize(mux)
}

// contentTypes are the types of the page's files, independent of the machine's table.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// serveFile serves a part of the page.
func serveFile(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	if name == "" {
		name = "index.html"
	}
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		httpError(w, http.StatusNotFound, "not found")
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
	w.Write(text)
}

// yaml serves an object as YAML.
func (s *Server) yaml(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	text, err := s.Source.YAML(q.Get("kind"), q.Get("key"))
	if err != nil {
		httpError(w, http.StatusNotFound, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(text)
}

// Serve serves on a listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return httpserver.Serve(ctx, l, s.Handler(), s.Stall)
}
