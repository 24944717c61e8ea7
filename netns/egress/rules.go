package egress

import "net/netip"

// Rules are a Proxy reduced to what does not depend on the egress mode: permitted destinations and echo
// requests. NetworkPolicies are not part of them.
type Rules struct{ e *Proxy }

// NewRules returns the rules of a pod for another forwarder; put sends packets to the pod.
func NewRules(c Config, put func(packet []byte)) *Rules {
	e := &Proxy{config: c, write: put, maxFlows: descriptorLimit()}
	e.udp.all = map[flow]*udpSession{}
	return &Rules{e}
}

// Target returns the destination in the host's network for a packet of a protocol to dst; ok is false for
// destinations that a pod must not or cannot reach.
func (r *Rules) Target(protocol string, dst netip.AddrPort) (to netip.AddrPort, ok bool) {
	return r.e.hostTarget(protocol, dst)
}

// Echo handles a packet if it is an echo request.
func (r *Rules) Echo(packet []byte) bool {
	p, ok := parse(packet)
	if !ok || !p.isEchoRequest() {
		return false
	}
	r.e.forwardEcho(p)
	return true
}

// Idle reports whether no echo request waits for an answer.
func (r *Rules) Idle() bool { return r.e.flows.Load() == 0 }

// Close ends all echo requests.
func (r *Rules) Close() { r.e.udp.close() }
