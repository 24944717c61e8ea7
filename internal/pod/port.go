package pod

import "net/netip"

// Port is one of a container's ports.
type Port struct {
	Container string `json:"container"`
	Name      string `json:"name,omitempty"`
	Protocol  string `json:"protocol"` // TCP, UDP or SCTP
	Number    int    `json:"number"`   // in the pod

	// HostPort, unless it is 0, is forwarded to the port, on HostIP or on all of the machine's
	// addresses.
	HostPort int    `json:"hostPort,omitempty"`
	HostIP   string `json:"hostIP,omitempty"` // an address as netip prints it
}

// HostAddr returns HostIP; the zero Addr means all addresses.
func (p Port) HostAddr() netip.Addr {
	a, _ := netip.ParseAddr(p.HostIP)
	return a.Unmap()
}

// Clashes reports whether the machine cannot open both ports.
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

// Published returns the ports that the host opens for the pod, each once. There are none in the
// host's network: containers open them themselves.
func (p *Plan) Published() []Port {
	if p.Network == NetworkHost {
		return nil
	}
	var list []Port
	ports := map[Port]bool{}
	for _, port := range p.Ports {
		key := Port{Protocol: port.Protocol, HostPort: port.HostPort, HostIP: port.HostIP}
		if port.HostPort != 0 && !ports[key] {
			ports[key] = true
			list = append(list, port)
		}
	}
	return list
}
