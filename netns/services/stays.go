package services

import (
	"net/netip"
	"slices"
)

// Stays says with which pod each client of a port of the machine stays: with the one to which
// the Service's address leads it, too. The zero Stays knows none.
type Stays struct {
	v4, v6 []netip.AddrPort // by slot; none: there is no pod with such an address
	apart  []netip.Addr     // of pods with a stack in user space
}

// Stays is that of a port of the machine.
func (d *Directory) Stays(protocol string, node uint16) Stays {
	for i := range d.Services {
		s := &d.Services[i]
		for _, p := range s.Ports {
			if node == 0 || p.Node != node || p.Protocol != protocol {
				continue
			}
			pods := d.Backing(s)
			stays := Stays{v4: bySlot(p.endpoints(pods, true)), v6: bySlot(p.endpoints(pods, false))}
			for _, b := range pods {
				if b.Stack {
					stays.apart = append(stays.apart, b.Addresses...)
				}
			}
			return stays
		}
	}
	return Stays{}
}

// Of is where a client's pod is: at an address of the client's own family, if it has one; not
// valid if there is no pod. shown says that the pod answers any address by way of the router.
func (s Stays) Of(client netip.Addr) (to netip.AddrPort, shown bool) {
	client = client.Unmap().WithZone("")
	list := s.v4
	if client.Is6() && len(s.v6) > 0 {
		list = s.v6
	}
	if len(list) == 0 {
		return netip.AddrPort{}, false
	}
	to = list[slot(client)]
	return to, !slices.Contains(s.apart, to.Addr())
}
