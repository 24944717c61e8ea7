package ingress

import "net/netip"

// Filter reports whether a client may connect to a port of the pod by a protocol, "TCP" or "UDP". Many
// threads may call it at once.
type Filter func(client netip.Addr, protocol string, port int) bool

// clientInfo describes the client of a connection or a flow.
type clientInfo struct {
	addr      netip.Addr
	protocol  string
	port      int  // of the pod
	elsewhere bool // it belongs to another pod, which no Filter of this one concerns
}

// SetFilter sets the Filter of new connections, and ends connections that it does not allow. nil allowsLocked all.
func (s *Server) SetFilter(f Filter) {
	s.mu.Lock()
	s.filter = f
	for end, of := range s.conns {
		if !s.allowsLocked(of) {
			end.Close()
		}
	}
	s.mu.Unlock()
	if d, ok := s.dial.(*NetnsDialer); ok {
		_ = d.loop.Do(func() error { // a loop that has ended has no connections
			for _, c := range s.proxied {
				if f != nil && !c.of.elsewhere && !f(c.of.addr, c.of.protocol, c.of.port) {
					c.end()
				}
			}
			return nil
		})
	}
}

// allowsLocked reports whether a client may connect. The caller holds mu.
func (s *Server) allowsLocked(c clientInfo) bool {
	return s.filter == nil || c.elsewhere || s.filter(c.addr, c.protocol, c.port)
}

// allows is allowsLocked for callers that do not hold mu.
func (s *Server) allows(c clientInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowsLocked(c)
}
