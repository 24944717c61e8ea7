package runner

import (
	"errors"
	"os"
	"strings"

	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/services"
)

// A port of the machine that a Service opens (NodePort) is open as long as a pod stands
// behind the Service: each of them listens to it, and the kernel gives every connection to
// one. So nobody has to live but the pods, and they see the client's address; a keeper holds
// the socket as it does that of a hostPort.

// node is such a port, of one pod.
type node struct {
	file   *os.File
	to     uint16
	served bool
}

// nodePrefix begins the names of these ports among the descriptors that the keeper holds.
const nodePrefix = "node:"

// inherit takes what another supervisor has opened, until it is known where it leads.
func (p *publisher) inherit(name string, file *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[name] = node{file: file}
}

// leadNodes is publisher.lead by what is known now.
func (s *sandbox) leadNodes() error {
	if s.slot == 0 {
		return nil
	}
	d, err := readDirectory(s.store)
	if err != nil {
		return err
	}
	return s.ports.lead(s, d.Nodes(s.store.Namespace, s.store.Name))
}

// lead opens the ports of the machine that Services want to lead to the pod, and no
// others. One that another program has keeps no other from being opened.
func (p *publisher) lead(s *sandbox, wanted []services.Node) error {
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
		errs = append(errs, p.openNode(s, h, w.To))
	}
	for name := range p.nodes {
		if !stays[name] {
			p.shut(name)
		}
	}
	return errors.Join(errs...)
}

// openNode has a port lead to one of the pod's. The caller holds mu.
func (p *publisher) openNode(s *sandbox, h hostport.Port, to uint16) error {
	name := h.String()
	n, has := p.nodes[name]
	if has && n.served && n.to == to {
		return nil
	}
	if err := p.begin(s); err != nil {
		return err
	}
	if !has {
		bound, err := hostport.Bind(h)
		if err != nil {
			return err
		}
		n.file = bound
		if err = hostport.Listen(bound, h); err == nil {
			err = p.keeper.Watch(nodePrefix+name, bound)
		}
		if err != nil {
			bound.Close()
			return err
		}
	}
	if n.served {
		p.server.Remove(n.file)
	}
	err := p.server.Add(n.file, h.Protocol, int(to))
	n.to, n.served = to, err == nil // else the next attempt is another
	p.nodes[name] = n
	return err
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
