package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/pod"
)

// HostPorts has the pod's ports of the host. The keeper has them too, so that no
// connection is refused while there is no supervisor.
type HostPorts struct {
	podInit *podinit.Client

	mu        sync.Mutex
	open      map[string]*os.File  // by the names of hostport
	NodePorts map[string]nodePort  // those that Services open, too
	active    bool                 // there is a sandbox
	server    *ingress.Server      // nil while there is no sandbox
	dialer    *ingress.NetnsDialer // of server, if that is how it reaches the pod
}

// KeptName is a port's name among the descriptors that the keeper holds.
func KeptName(name string) string { return "port:" + name }

// NewHostPorts returns a HostPorts without a port. The pod init keeps the sockets.
func NewHostPorts(keeper *podinit.Client) *HostPorts {
	return &HostPorts{podInit: keeper, open: map[string]*os.File{}, NodePorts: map[string]nodePort{}}
}

// HostPort is the port of the host that a container's port asks for.
func HostPort(p pod.Port) hostport.Port {
	return hostport.Port{Protocol: strings.ToLower(p.Protocol), Addr: p.HostAddr(), Number: p.HostPort}
}

// Keep takes a port that somebody else has opened.
func (p *HostPorts) Keep(name string, file *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file = unpolled(file)
	if err := p.podInit.Watch(KeptName(name), file); err != nil {
		file.Close()
		return err
	}
	p.open[name] = file
	return nil
}

// unpolled is a port for which only the thread waits that takes what comes. Go's own waiting, which
// is for nobody, would wake another one for each connection.
func unpolled(port *os.File) *os.File {
	port, _, _ = rawsys.Unpolled(port) // else it is only slower
	return port
}

// openMissing opens the ports that are not open.
func (p *HostPorts) openMissing(plan *pod.Plan) error {
	var errs []error
	for _, port := range plan.Published() {
		h := HostPort(port)
		p.mu.Lock()
		has := p.open[h.String()] != nil
		p.mu.Unlock()
		if has {
			continue
		}
		file, err := hostport.Bind(h)
		if err == nil {
			if err = hostport.Listen(file, h); err != nil {
				file.Close()
			} else {
				err = p.Keep(h.String(), file)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// AcceptInherited takes the ports that the one who started the pod has opened.
func (p *HostPorts) AcceptInherited(plan *pod.Plan) error {
	handed := podinit.InheritedPorts()
	defer func() {
		for _, file := range handed {
			file.Close()
		}
	}()
	for _, port := range plan.Published() {
		h := HostPort(port)
		file := handed[h.String()]
		if file == nil {
			continue
		}
		if err := hostport.Listen(file, h); err != nil {
			return err
		}
		delete(handed, h.String())
		if err := p.Keep(h.String(), file); err != nil {
			return err
		}
	}
	return p.openMissing(plan)
}

// Serve lets the ports reach the pod.
func (p *HostPorts) Serve(plan *pod.Plan, via *Network) error {
	ports := plan.Published()
	if err := p.openMissing(plan); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = true
	if len(ports) == 0 {
		return nil
	}
	if err := p.startServer(via); err != nil {
		return err
	}
	for _, port := range ports {
		h := HostPort(port)
		if err := p.server.Add(p.open[h.String()], h.Protocol, port.Number); err != nil {
			return err
		}
	}
	return nil
}

// startServer makes the server, if there is none. The caller holds mu.
func (p *HostPorts) startServer(via *Network) error {
	if p.server != nil {
		return nil
	}
	if via.stack != nil {
		p.server = ingress.New(via.stack)
		return nil
	}
	way, err := via.podDialer()
	if err != nil {
		return fmt.Errorf("reach the pod's ports: %w", err)
	}
	p.dialer, p.server = way, ingress.New(way)
	return nil
}

// podDialer is how a connection comes to the pod: from the router, to which the pod's answers
// to anybody return; or, without one, inside the pod.
func (n *Network) podDialer() (*ingress.NetnsDialer, error) {
	if n.Slot == 0 {
		way := &ingress.NetnsDialer{Addrs: []netip.Addr{netip.MustParseAddr(FallbackIP)}}
		return way, way.Start(n.netns)
	}
	way := &ingress.NetnsDialer{Addrs: n.Addresses(), Transparent: true, PodPrefixes: []netip.Prefix{n.Pool.V4, n.Pool.V6}}
	return way, way.Start(n.router())
}

// Pause stops taking connections, unless some are open; then resume must follow.
func (p *HostPorts) Pause() bool {
	p.mu.Lock()
	if p.server != nil && !p.server.Pause() {
		p.mu.Unlock()
		return false
	}
	return true
}

// Resume takes connections again after a Pause that returned true.
func (p *HostPorts) Resume() {
	if p.server != nil {
		p.server.Resume()
	}
	p.mu.Unlock()
}

// Close ends all connections and gives the ports back.
func (p *HostPorts) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		if p.dialer != nil {
			p.dialer.Close()
		}
		p.server, p.dialer = nil, nil
	}
	for name, file := range p.open {
		file.Close()
		p.podInit.Drop(KeptName(name))
	}
	clear(p.open)
	p.active = false
	for name := range p.NodePorts {
		p.closeNodePort(name)
	}
	return nil
}

// A port of the machine that a Service opens (NodePort) is open as long as a pod stands
// behind the Service: each of them listens to it, and the kernel gives every connection to
// one. So nobody has to live but the pods, and they see the client's address; a keeper holds
// the socket as it does that of a HostPort. Where clients stay with their pods, the one who got
// a connection that is another's leads it there, by the router that all pods hang on.

// nodePort is such a port, of one pod.
type nodePort struct {
	file   *os.File
	target services.NodePort
	served bool
}

// NodePortPrefix begins the names of these ports among the descriptors that the keeper holds.
const NodePortPrefix = "node:"

// InheritNodePort takes what another supervisor has opened, until it is known where it leads.
func (p *HostPorts) InheritNodePort(name string, file *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.NodePorts[name] = nodePort{file: unpolled(file)}
}

// UpdateNodePorts is publisher.lead by what is known now.
func (n *Network) UpdateNodePorts() error {
	if n.Slot == 0 {
		return nil
	}
	d, damaged := readServiceTargets(n.store)
	if !OnlyDamaged(damaged) {
		return damaged
	}
	return errors.Join(damaged, n.Ports.updateNodePorts(n, d.NodePorts(n.store.Namespace, n.store.Name)))
}

// updateNodePorts opens the ports of the machine that Services want to lead to the pod, and no
// others. One that another program has keeps no other from being opened.
func (p *HostPorts) updateNodePorts(via *Network, wanted []services.NodePort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active {
		return nil
	}
	var errs []error
	stays := map[string]bool{}
	for _, w := range wanted {
		h := hostport.Port{Protocol: strings.ToLower(w.Protocol), Number: int(w.Port), Shared: true}
		stays[h.String()] = true
		errs = append(errs, p.openNodePort(via, h, w))
	}
	for name := range p.NodePorts {
		if !stays[name] {
			p.closeNodePort(name)
		}
	}
	return errors.Join(errs...)
}

// openNodePort has a port lead to one of the pod's. The caller holds mu.
func (p *HostPorts) openNodePort(via *Network, h hostport.Port, to services.NodePort) error {
	name := h.String()
	n, has := p.NodePorts[name]
	if has && n.served && n.target == to {
		return nil
	}
	if err := p.startServer(via); err != nil {
		return err
	}
	if !has {
		bound, err := hostport.Bind(h)
		if err != nil {
			return err
		}
		n.file = unpolled(bound)
		if err = hostport.Listen(n.file, h); err == nil {
			err = p.podInit.Watch(NodePortPrefix+name, n.file)
		}
		if err != nil {
			n.file.Close()
			return err
		}
	}
	if n.served {
		p.server.Remove(n.file)
	}
	err := p.serveNodePort(via, n.file, h.Protocol, to)
	n.target, n.served = to, err == nil // else the next attempt is another
	p.NodePorts[name] = n
	return err
}

// serveNodePort has what comes to a port go to the pod, or, where clients stay with their pods, to
// theirs. The caller holds mu.
func (p *HostPorts) serveNodePort(via *Network, file *os.File, protocol string, to services.NodePort) error {
	if !to.Affinity {
		return p.server.Add(file, protocol, int(to.To))
	}
	if via.stack != nil {
		via.Warn("clients of a NodePort Service with sessionAffinity that another pod forwards here have the router's address: this pod's network is a user-space stack")
	}
	if p.dialer == nil { // to other pods, where the pod's own is another
		way, err := via.podDialer()
		if err != nil {
			return fmt.Errorf("reach other pods: %w", err)
		}
		p.dialer = way
	}
	return p.server.AddShared(file, protocol, int(to.To), via.clientOwner(to), p.dialer)
}

// clientOwner says which clients of a port are other pods'.
func (n *Network) clientOwner(to services.NodePort) ingress.Affinity {
	own := n.Addresses()
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

// closeNodePort gives a port back. The caller holds mu.
func (p *HostPorts) closeNodePort(name string) {
	n := p.NodePorts[name]
	if p.server != nil && n.served {
		p.server.Remove(n.file)
	}
	n.file.Close()
	p.podInit.Drop(NodePortPrefix + name)
	delete(p.NodePorts, name)
}
