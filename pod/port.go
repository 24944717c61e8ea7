package pod

import "net/netip"

// Port is one of a container's ports.
type Port struct {
	Container string `json:"container"`
	Name      string `json:"name,omitempty"`
	Protocol  string `json:"protocol"` // TCP, UDP or SCTP
	Number    int    `json:"number"`   // in the pod

	// HostPort, unless it is 0, leads to the port from HostIP, or from all of the
	// machine's addresses.
	HostPort int    `json:"hostPort,omitempty"`
	HostIP   string `json:"hostIP,omitempty"` // an address as netip prints it
}

// HostAddr is HostIP; the zero Addr for all.
func (p Port) HostAddr() netip.Addr {
	a, _ := netip.ParseAddr(p.HostIP)
	return a.Unmap()
}

// Clashes says whether the machine cannot open both ports.
func (p Port) Clashes(q Port) bool {
	if p.HostPort == 0 || p.HostPort != q.HostPort || p.Protocol != q.Protocol {
		return false
	}
	a, b := p.HostAddr(), q.HostAddr()
	if !a.IsValid() || !b.IsValid() { // one is open on all addresses
		return true
	}
	return a.Is4() == b.Is4() && (a == b || a.IsUnspecified() || b.IsUnspecified())
}

// Published are the ports that the host opens for the pod, each once. In the host's own
// network there are none: containers open them themselves.
func (p *Plan) Published() []Port {
	if p.Network == NetworkHost {
		return nil
	}
	var list []Port
	seen := map[Port]bool{}
	for _, port := range p.Ports {
		key := Port{Protocol: port.Protocol, HostPort: port.HostPort, HostIP: port.HostIP}
		if port.HostPort != 0 && !seen[key] {
			seen[key] = true
			list = append(list, port)
		}
	}
	return list
}
