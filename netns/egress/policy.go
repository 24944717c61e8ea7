package egress

import "net/netip"

// Policy are what holds for a pod's traffic whoever carries it: where it may go, and how it
// asks for echoes.
type Policy struct{ e *Proxy }

// NewPolicy makes the rules of a pod for another carrier, which has put send packets to it.
func NewPolicy(c Config, put func(packet []byte)) *Policy {
	e := &Proxy{config: c, write: put, maxFlows: descriptorLimit()}
	e.udp.all = map[flow]*udpSession{}
	return &Policy{e}
}

// Target is where a packet for dst is to go in the host's network; ok is false for what a
// pod must not or cannot reach.
func (r *Policy) Target(dst netip.AddrPort) (to netip.AddrPort, ok bool) { return r.e.hostTarget(dst) }

// Echo takes a packet if it is a request for an echo.
func (r *Policy) Echo(packet []byte) bool {
	p, ok := parse(packet)
	if !ok || !p.isEchoRequest() {
		return false
	}
	r.e.forwardEcho(p)
	return true
}

// Idle says whether no echo is waited for.
func (r *Policy) Idle() bool { return r.e.flows.Load() == 0 }

// Close ends all that is under way.
func (r *Policy) Close() { r.e.udp.close() }
