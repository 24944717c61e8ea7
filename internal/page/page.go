// Package page is the page of `podrun ui`: its HTML, styles and scripts, as they are sent,
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
package page

import (
	"context"
	"embed"
	"net/http"
	"path"
	"time"
)

// Source is where what is shown comes from. It is asked by several at once.
type Source interface {
	// Watch tells of all things there are, and again when one has changed, until ctx
	// ends. problem is what stood in the way, for people.
	Watch(ctx context.Context, seen func(all []Thing, problem string))
	// Use is what is used now by what runs, since it was asked the last time.
	Use() ([]Use, error)
	// Logs gives lines that are there, and those that come, until there will be no more
	// or ctx ends. What stands in the way is an error for people.
	Logs(ctx context.Context, of Log, line func(Line)) error
}

// Thing is something that is shown: a pod, or an event.
type Thing struct {
	Kind string // "pods" or "events"
	Key  string // NAMESPACE/NAME
	JSON []byte
}

// Use is what a pod uses.
type Use struct {
	Key    string // NAMESPACE/NAME
	CPU    *int64 // thousandths of a processor; nil: not known
	Memory *int64 // bytes; nil: not known
	Detail any    // as JSON has it
}

// Log says which log is meant.
type Log struct {
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
	mux.HandleFunc("/", file)
	mux.HandleFunc("/api/state", s.stream(s.state))
	mux.HandleFunc("/api/logs", s.stream(s.logs))
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is no such thing here")
	})
	return s.guard(mux)
}

// types are those of the page's files, whatever the machine's table says.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// file sends a part of the page.
func file(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	if name == "" {
		name = "index.html"
	}
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		refuse(w, http.StatusNotFound, "there is no such thing here")
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Write(text)
}
