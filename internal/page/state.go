package page

import (
	"net/http"
	"time"
)

// state tells a page what there is and what changes. A page that reads slowly gets the
// latest, and not all that was in between.
func (s *Server) state(out *stream, r *http.Request) {
	defer s.hub.join()()
	beat := time.NewTicker(heartbeat)
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
			if out.beat() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
