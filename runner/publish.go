package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/pod"
)

// publisher has the pod's ports of the host. The keeper has them too, so that no
// connection is refused while there is no supervisor.
type publisher struct {
	keeper *stage.Keeper

	mu     sync.Mutex
	open   map[string]*os.File  // by the names of hostport
	nodes  map[string]node      // those that Services open, too
	live   bool                 // there is a sandbox
	server *ingress.Server      // nil while there is no sandbox
	way    *ingress.NetnsDialer // of server, if that is how it reaches the pod
}

// keptPort is a port's name among the descriptors that the keeper holds.
func keptPort(name string) string { return "port:" + name }

func newPublisher(keeper *stage.Keeper) *publisher {
	return &publisher{keeper: keeper, open: map[string]*os.File{}, nodes: map[string]node{}}
}

func hostPort(p pod.Port) hostport.Port {
	return hostport.Port{Protocol: strings.ToLower(p.Protocol), Addr: p.HostAddr(), Number: p.HostPort}
}

// hold takes a port that somebody else has opened.
func (p *publisher) hold(name string, file *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file = quiet(file)
	if err := p.keeper.Watch(keptPort(name), file); err != nil {
		file.Close()
		return err
	}
	p.open[name] = file
	return nil
}

// quiet is a port for which only the thread waits that takes what comes. Go's own waiting, which
// is for nobody, would wake another one for each connection.
func quiet(port *os.File) *os.File {
	port, _, _ = brief.Aside(port) // else it is only slower
	return port
}

// require opens the ports that are not open.
func (p *publisher) require(plan *pod.Plan) error {
	var errs []error
	for _, port := range plan.Published() {
		h := hostPort(port)
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
				err = p.hold(h.String(), file)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// takeHanded takes the ports that the one who started the pod has opened.
func (p *publisher) takeHanded(plan *pod.Plan) error {
	handed := stage.HandedPorts()
	defer func() {
		for _, file := range handed {
			file.Close()
		}
	}()
	for _, port := range plan.Published() {
		h := hostPort(port)
		file := handed[h.String()]
		if file == nil {
			continue
		}
		if err := hostport.Listen(file, h); err != nil {
			return err
		}
		delete(handed, h.String())
		if err := p.hold(h.String(), file); err != nil {
			return err
		}
	}
	return p.require(plan)
}

// serve lets the ports reach the pod.
func (p *publisher) serve(plan *pod.Plan, via *network) error {
	ports := plan.Published()
	if err := p.require(plan); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = true
	if len(ports) == 0 {
		return nil
	}
	if err := p.begin(via); err != nil {
		return err
	}
	for _, port := range ports {
		h := hostPort(port)
		if err := p.server.Add(p.open[h.String()], h.Protocol, port.Number); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the server, if there is none. The caller holds mu.
func (p *publisher) begin(via *network) error {
	if p.server != nil {
		return nil
	}
	if via.stack != nil {
		p.server = ingress.New(via.stack)
		return nil
	}
	way, err := via.wayIn()
	if err != nil {
		return fmt.Errorf("reach the pod's ports: %w", err)
	}
	p.way, p.server = way, ingress.New(way)
	return nil
}

// wayIn is how a connection comes to the pod: from the router, to which the pod's answers
// to anybody return; or, without one, inside the pod.
func (n *network) wayIn() (*ingress.NetnsDialer, error) {
	if n.slot == 0 {
		way := &ingress.NetnsDialer{Addrs: []netip.Addr{netip.MustParseAddr(podAddress)}}
		return way, way.Start(n.netns)
	}
	way := &ingress.NetnsDialer{Addrs: n.addresses(), Transparent: true, PodPrefixes: []netip.Prefix{n.pool.V4, n.pool.V6}}
	return way, way.Start(n.router())
}

// pause stops taking connections, unless some are open; then resume must follow.
func (p *publisher) pause() bool {
	p.mu.Lock()
	if p.server != nil && !p.server.Pause() {
		p.mu.Unlock()
		return false
	}
	return true
}

func (p *publisher) resume() {
	if p.server != nil {
		p.server.Resume()
	}
	p.mu.Unlock()
}

// close ends all connections and gives the ports back.
func (p *publisher) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		if p.way != nil {
			p.way.Close()
		}
		p.server, p.way = nil, nil
	}
	for name, file := range p.open {
		file.Close()
		p.keeper.Drop(keptPort(name))
	}
	clear(p.open)
	p.live = false
	for name := range p.nodes {
		p.shut(name)
	}
	return nil
}
