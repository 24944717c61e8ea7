package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/services"
)

// HostPorts holds the pod's host ports. Pod init holds the sockets too, so that no connection is refused
// while there is no supervisor.
type HostPorts struct {
	podInit *podinit.Client

	mu        sync.Mutex
	open      map[string]*os.File  // by hostport's names
	NodePorts map[string]nodePort  // including those that Services open
	active    bool                 // there is a sandbox
	server    *ingress.Server      // nil while there is no sandbox
	dialer    *ingress.NetnsDialer // of server, if it reaches the pod through a namespace
	filter    ingress.Filter       // nil: all clients may connect
}

// NewHostPorts returns a HostPorts without ports. Pod init holds the sockets.
func NewHostPorts(podInit *podinit.Client) *HostPorts {
	return &HostPorts{podInit: podInit, open: map[string]*os.File{}, NodePorts: map[string]nodePort{}}
}

// HostPort returns the host port that a container's port requests.
func HostPort(p pod.Port) hostport.Port {
	return hostport.Port{Protocol: strings.ToLower(p.Protocol), Addr: p.HostAddr(), Number: p.HostPort}
}

// Keep adds an open port, and makes pod init hold its socket, too.
func (p *HostPorts) Keep(name string, file *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file = unpolled(file)
	if err := p.podInit.Watch(protocol.KeptPort+name, file); err != nil {
		file.Close()
		return err
	}
	p.open[name] = file
	return nil
}

// unpolled removes a port from the runtime's poller: only the thread that accepts waits for it. Go's poller
// would wake another thread for each connection.
func unpolled(port *os.File) *os.File {
	port, _, _ = rawsys.Unpolled(port) // on an error it is only slower
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

// AcceptInherited takes over the ports that the process which started the pod has opened.
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

// Serve forwards connections from the ports to the pod.
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

// startServer starts the server if there is none. The caller holds mu.
func (p *HostPorts) startServer(via *Network) error {
	if p.server != nil {
		return nil
	}
	if via.stack != nil {
		p.server = ingress.New(via.stack)
		p.server.SetFilter(p.filter)
		return nil
	}
	dialer, err := via.podDialer()
	if err != nil {
		return fmt.Errorf("reach the pod's ports: %w", err)
	}
	p.dialer, p.server = dialer, ingress.New(dialer)
	p.server.SetFilter(p.filter)
	return nil
}

// setFilter sets which clients may connect, and ends the connections of all others.
func (p *HostPorts) setFilter(f ingress.Filter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
	if p.server != nil {
		p.server.SetFilter(f)
	}
}

// podDialer returns the dialer for connections to the pod. It dials from the router, through which the pod's
// replies to any address pass; without a router it dials inside the pod.
func (n *Network) podDialer() (*ingress.NetnsDialer, error) {
	if n.Slot == 0 {
		dialer := &ingress.NetnsDialer{Addrs: []netip.Addr{netip.MustParseAddr(FallbackIP)}}
		return dialer, dialer.Start(n.netns)
	}
	dialer := &ingress.NetnsDialer{Addrs: n.Addresses(), Transparent: true, PodPrefixes: n.Pool.Prefixes(), UnknownMark: nft.UnknownClientMark}
	return dialer, dialer.Start(n.router())
}

// Suspend stops accepting connections, unless some are open, and reports whether it did. If it returns true,
// it holds mu until Continue, which must follow.
func (p *HostPorts) Suspend() bool {
	p.mu.Lock()
	if p.server != nil && !p.server.Pause() {
		p.mu.Unlock()
		return false
	}
	return true
}

// Continue accepts connections again after a Suspend that returned true.
func (p *HostPorts) Continue() {
	if p.server != nil {
		p.server.Resume()
	}
	p.mu.Unlock()
}

// Close ends all connections and closes the ports.
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
		p.podInit.Drop(protocol.KeptPort + name)
	}
	clear(p.open)
	p.active = false
	for name := range p.NodePorts {
		p.closeNodePort(name)
	}
	return nil
}

// nodePort is one pod's part in serving a NodePort of a Service. The supervisor of each pod that is an endpoint
// of the Service listens on the port, and the kernel gives every connection to one of them. So no process besides
// the pods' need run, and the pods see the client's address. Pod init holds the socket as it does for a HostPort.
// With session affinity a supervisor may accept a connection of a client that belongs to another pod; it forwards
// the connection to that pod, through the router that connects all pods.
type nodePort struct {
	file   *os.File
	target services.NodePort
	served bool
}

// RecoverNodePort takes over a port that another supervisor has opened. Its target is set later.
func (p *HostPorts) RecoverNodePort(name string, file *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.NodePorts[name] = nodePort{file: unpolled(file)}
}

// UpdateNodePorts updates the NodePorts from the current Services.
func (n *Network) UpdateNodePorts() error {
	if n.Slot == 0 {
		return nil
	}
	d, damaged := readServiceTargets(n.store, n.Pool)
	if !OnlyDamaged(damaged) {
		return damaged
	}
	return errors.Join(damaged, n.Ports.updateNodePorts(n, d.NodePorts(n.store.Namespace, n.store.Name)))
}

// updateNodePorts opens the ports of the machine that Services forward to the pod, and closes all other node
// ports. If another program uses a port, the remaining ports are opened nevertheless.
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

// openNodePort forwards a port to one of the pod's ports. The caller holds mu.
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
			err = p.podInit.Watch(protocol.KeptNodePort+name, n.file)
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
	n.target, n.served = to, err == nil // on an error the next update tries again
	p.NodePorts[name] = n
	return err
}

// serveNodePort forwards connections of a port to the pod or, with session affinity, to the pod of the
// client. The caller holds mu.
func (p *HostPorts) serveNodePort(via *Network, file *os.File, protocol string, to services.NodePort) error {
	if !to.Affinity {
		return p.server.Add(file, protocol, int(to.To))
	}
	if via.stack != nil {
		via.Warn("clients of a NodePort Service with sessionAffinity that another pod forwards here have the router's address: this pod's network is a user-space stack")
	}
	if p.dialer == nil { // for other pods, when the pod's own dialer is of another kind
		dialer, err := via.podDialer()
		if err != nil {
			return fmt.Errorf("reach other pods: %w", err)
		}
		p.dialer = dialer
	}
	return p.server.AddShared(file, protocol, int(to.To), via.clientOwner(to), p.dialer)
}

// clientOwner returns the function that maps clients of a port to other pods.
func (n *Network) clientOwner(to services.NodePort) ingress.Affinity {
	addresses := n.Addresses()
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
		endpoint, shown := stays.Endpoint(client, n.affinityClients())
		if slices.Contains(addresses, endpoint.Addr()) {
			return netip.AddrPort{}, false
		}
		return endpoint, shown
	}
}

// closeNodePort closes a port. The caller holds mu.
func (p *HostPorts) closeNodePort(name string) {
	n := p.NodePorts[name]
	n.file.Close()
	p.podInit.Drop(protocol.KeptNodePort + name)
	if p.server != nil && n.served { // last: what comes before the socket is closed is accepted
		p.server.Remove(n.file)
	}
	delete(p.NodePorts, name)
}
