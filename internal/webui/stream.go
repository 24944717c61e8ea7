package webui

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/podrun/podrun/internal/httpserver"
)

// state sends a page the current state and its changes. A page that reads slowly gets the latest
// state without the intermediate ones.
func (s *Server) state(out *stream, r *http.Request) {
	defer s.hub.join()()
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	for last := 0; ; {
		u, version, more := s.hub.since(last)
		if u != nil {
			if out.send(u) != nil {
				return
			}
			last = version
		}
		select {
		case <-more:
		case <-beat.C:
			if out.heartbeat() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// heartbeatInterval is the interval of messages that keep a stream alive.
const heartbeatInterval = 10 * time.Second

// stream is a response that stays open, as Server-Sent Events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration // how long a client may take to read a message
}

// stream returns a handler that opens a stream and passes it to handle. It limits the number of open streams.
func (s *Server) stream(handle func(*stream, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
			defer httpserver.HoldConn(r.Context())()
		default:
			httpError(w, http.StatusServiceUnavailable, "too many open pages: close some")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodHead {
			return
		}
		handle(&stream{w, http.NewResponseController(w), s.Stall}, r)
	}
}

// send sends an object as JSON. An error means that the client does not read.
func (o *stream) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.write("data: " + string(text) + "\n\n")
}

// heartbeat sends a comment that keeps the stream alive.
func (o *stream) heartbeat() error { return o.write(":\n\n") }

func (o *stream) write(text string) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(o.stall)); err != nil {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}
