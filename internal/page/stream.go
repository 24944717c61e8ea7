package page

import (
	"encoding/json"
	"net/http"
	"time"
)

// heartbeat is how often a stream says something, so that the page knows that it is
// still there.
const heartbeat = 10 * time.Second

// stream is one answer that goes on.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

// stream prepares a handler's stream, if there are not too many.
func (s *Server) stream(handle func(*stream, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
			defer keep(r.Context())()
		default:
			refuse(w, http.StatusServiceUnavailable, "too many pages are open here: close some")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodHead {
			return
		}
		handle(&stream{w, http.NewResponseController(w), s.Stall}, r)
	}
}

// send sends an object. An error means that nobody reads it.
func (o *stream) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.write("data: " + string(text) + "\n\n")
}

// beat says that the stream is there.
func (o *stream) beat() error { return o.write(":\n\n") }

func (o *stream) write(text string) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(o.stall)); err != nil {
		return err
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}
