package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/services"
)

// A port of the machine that a Service opens (NodePort) is open as long as a pod stands
// behind the Service: each of them listens to it, and the kernel gives every connection to
// one. So nobody has to live but the pods, and they see the client's address; a keeper holds
// the socket as it does that of a hostPort. Where clients stay with their pods, the one who got
// a connection that is another's leads it there, by the router that all pods hang on.

// node is such a port, of one pod.
type node struct {
	file   *os.File
	to     services.NodePort
	served bool
}

// nodePrefix begins the names of these ports among the descriptors that the keeper holds.
const nodePrefix = "node:"

// inherit takes what another supervisor has opened, until it is known where it leads.
func (p *publisher) inherit(name string, file *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[name] = node{file: quiet(file)}
}

// leadNodes is publisher.lead by what is known now.
func (n *network) leadNodes() error {
	if n.slot == 0 {
		return nil
	}
	d, damaged := readLeads(n.store)
	if !known(damaged) {
		return damaged
	}
	return errors.Join(damaged, n.ports.lead(n, d.NodePorts(n.store.Namespace, n.store.Name)))
}

// lead opens the ports of the machine that Services want to lead to the pod, and no
// others. One that another program has keeps no other from being opened.
func (p *publisher) lead(via *network, wanted []services.NodePort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		return nil
	}
	var errs []error
	stays := map[string]bool{}
	for _, w := range wanted {
		h := hostport.Port{Protocol: strings.ToLower(w.Protocol), Number: int(w.Port), Shared: true}
		stays[h.String()] = true
		errs = append(errs, p.openNode(via, h, w))
	}
	for name := range p.nodes {
		if !stays[name] {
			p.shut(name)
		}
	}
	return errors.Join(errs...)
}

// openNode has a port lead to one of the pod's. The caller holds mu.
func (p *publisher) openNode(via *network, h hostport.Port, to services.NodePort) error {
	name := h.String()
	n, has := p.nodes[name]
	if has && n.served && n.to == to {
		return nil
	}
	if err := p.begin(via); err != nil {
		return err
	}
	if !has {
		bound, err := hostport.Bind(h)
		if err != nil {
			return err
		}
		n.file = quiet(bound)
		if err = hostport.Listen(n.file, h); err == nil {
			err = p.keeper.Watch(nodePrefix+name, n.file)
		}
		if err != nil {
			n.file.Close()
			return err
		}
	}
	if n.served {
		p.server.Remove(n.file)
	}
	err := p.serveNode(via, n.file, h.Protocol, to)
	n.to, n.served = to, err == nil // else the next attempt is another
	p.nodes[name] = n
	return err
}

// serveNode has what comes to a port go to the pod, or, where clients stay with their pods, to
// theirs. The caller holds mu.
func (p *publisher) serveNode(via *network, file *os.File, protocol string, to services.NodePort) error {
	if !to.Affinity {
		return p.server.Add(file, protocol, int(to.To))
	}
	if via.stack != nil {
		via.warn("of clients of a Service's port of the machine whom another pod leads here, as they stay with theirs (sessionAffinity), this one sees the router's address: its network is a stack in user space")
	}
	if p.way == nil { // to other pods, where the pod's own is another
		way, err := via.wayIn()
		if err != nil {
			return fmt.Errorf("reach other pods: %w", err)
		}
		p.way = way
	}
	return p.server.AddShared(file, protocol, int(to.To), via.elsewhere(to), p.way)
}

// elsewhere says which clients of a port are other pods'.
func (n *network) elsewhere(to services.NodePort) ingress.Affinity {
	own := n.addresses()
	var mu sync.Mutex
	var known *dns.View
	var stays services.Affinity
	return func(client netip.Addr) (netip.AddrPort, bool) {
		v := n.view()
		mu.Lock()
		defer mu.Unlock()
		if v != known {
			known, stays = v, v.Affinity(to.Protocol, to.Port)
		}
		at, shown := stays.Endpoint(client)
		if slices.Contains(own, at.Addr()) {
			return netip.AddrPort{}, false
		}
		return at, shown
	}
}

// shut gives a port back. The caller holds mu.
func (p *publisher) shut(name string) {
	n := p.nodes[name]
	if p.server != nil && n.served {
		p.server.Remove(n.file)
	}
	n.file.Close()
	p.keeper.Drop(nodePrefix + name)
	delete(p.nodes, name)
}
