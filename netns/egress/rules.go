package egress

import "net/netip"

// Rules are what holds for a pod's traffic whoever carries it: where it may go, and how it
// asks for echoes.
type Rules struct{ e *Egress }

// NewRules makes the rules of a pod for another carrier, which has put send packets to it.
func NewRules(c Config, put func(packet []byte)) *Rules {
	e := &Egress{config: c, put: put, max: bound()}
	e.udp.all = map[flow]*conversation{}
	return &Rules{e}
}

// Target is where a packet for dst is to go in the host's network; ok is false for what a
// pod must not or cannot reach.
func (r *Rules) Target(dst netip.AddrPort) (to netip.AddrPort, ok bool) { return r.e.target(dst) }

// Echo takes a packet if it is a request for an echo.
func (r *Rules) Echo(packet []byte) bool {
	p, ok := parse(packet)
	if !ok || !p.echo() {
		return false
	}
	r.e.echo(p)
	return true
}

// Idle says whether no echo is waited for.
func (r *Rules) Idle() bool { return r.e.flows.Load() == 0 }

// Close ends all that is under way.
func (r *Rules) Close() { r.e.udp.close() }
