package ingress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// How long an idle flow of datagrams is kept: until the pod has answered, and after that. (Linux:
// nf_conntrack_udp_timeout and …_stream are 30 and 120.)
const (
	unansweredTimeout = 10 * time.Second
	answeredTimeout   = 60 * time.Second
)

// maxFlows limits the flows of a port. Further clients wait until one ends.
const maxFlows = 2048

// udpFlow is the traffic between one port of a client and one address of the host.
type udpFlow struct {
	pod     net.Conn
	to      netip.AddrPort // of another pod; not valid: the pod's own
	checked time.Time      // when the client's pod was checked last

	mu       sync.Mutex
	last     time.Time
	lifetime time.Duration
}

// flowFor returns the flow of a route and makes it if it is new; nil if there are too many, or the
// port is closed.
func (p *udpPort) flowFor(route clientRoute) (*udpFlow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	f := p.flows[route]
	if f != nil && !p.moved(route, f) {
		return f, nil
	}
	of := p.to.infoOf(route.client.Addr(), "UDP")
	if len(p.flows) >= maxFlows || !p.server.allows(of) {
		return nil, nil
	}
	f = &udpFlow{checked: time.Now(), last: time.Now(), lifetime: unansweredTimeout}
	var shown bool
	var err error
	if f.to, shown = p.to.redirect(route.client.Addr()); f.to.IsValid() {
		f.pod, err = p.to.dialer.dialUDP(route.client, f.to, shown)
	} else {
		f.pod, err = p.server.dial.DialUDP(route.client, p.to.port)
	}
	if err != nil {
		return nil, err
	}
	if !p.server.acquire(of, f.pod) {
		f.pod.Close()
		return nil, nil
	}
	p.flows[route] = f
	p.server.all.Go(func() {
		p.sendReplies(route, f)
		p.mu.Lock()
		if p.flows[route] == f {
			delete(p.flows, route)
		}
		p.mu.Unlock()
		p.server.release(f.pod)
		f.pod.Close()
	})
	return f, nil
}

// affinityInterval is how often the pod of a flow's client is checked.
const affinityInterval = time.Second

// moved reports whether a flow's client belongs to another pod now, and then ends the flow. The
// caller holds mu.
func (p *udpPort) moved(route clientRoute, f *udpFlow) bool {
	if p.to.affinity == nil || time.Since(f.checked) < affinityInterval {
		return false
	}
	f.checked = time.Now()
	if to, _ := p.to.redirect(route.client.Addr()); to == f.to {
		return false
	}
	delete(p.flows, route)
	f.pod.Close()
	return true
}

// touch records the arrival of a datagram, and lengthens the flow's lifetime to lifetime if that is
// longer.
func (f *udpFlow) touch(lifetime time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = time.Now()
	f.lifetime = max(f.lifetime, lifetime)
}

func (f *udpFlow) expiry() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.Add(f.lifetime)
}
