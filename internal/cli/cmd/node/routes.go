package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/masquerade"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// ownNetwork is the network of this process, which is the node's.
const ownNetwork = "/proc/self/ns/net"

// routes connects the router with the network of this node, which routes to the pods of other nodes
// (--pod-network routed).
type routes struct {
	dirs    store.Dirs
	address netip.Addr // of the node
	mtu     int
	changed func() // is called when the router leads to other peers

	router uint64         // to which the peers were given
	peers  []netip.Prefix // that were given last, with the addresses of nodes

	mu      sync.Mutex
	catalog *services.Catalog // nil: the API server has not sent the Services
	nodes   []netip.Addr      // the other nodes
}

// newRoutes returns the network of a node whose first address is given.
func newRoutes(dirs store.Dirs, address netip.Addr) (*routes, error) {
	if err := masquerade.MayAdminister(); err != nil {
		return nil, report.New(report.Host, "run podrun node as root, or use --pod-network wireguard", "--pod-network routed changes the network of the node: %w", err)
	}
	if !address.Is4() {
		return nil, report.New(report.Usage, "--node-ip gives an IPv4 address first", "--pod-network routed is for IPv4, and the node's address is %s", address)
	}
	mtu := deviceMTU(address)
	if mtu == 0 {
		return nil, report.New(report.Usage, "--node-ip gives an address of this host first", "no device of this host has the node's address %s", address)
	}
	return &routes{dirs: dirs, address: address, mtu: min(mtu, router.MTU)}, nil
}

// Last implements node.Tunnel.
func (r *routes) Last() (networks []netip.Prefix, peers []control.Peer, err error) {
	n, err := r.dirs.PodNetwork()
	for _, p := range n.Peers {
		if n.Node.IsValid() {
			peers = append(peers, control.Peer{Endpoint: p.Endpoint, Networks: p.CIDRs})
		}
	}
	return n.CIDRs, peers, err
}

// Set implements node.Tunnel.
func (r *routes) Set(networks []netip.Prefix, peers []control.Peer) (unreached, err error) {
	n := store.PodNetwork{CIDRs: networks, MTU: r.mtu, Node: r.address}
	var others []router.NodeRoute
	var nodes []netip.Addr
	for _, p := range peers {
		nodes = append(nodes, p.Endpoint.Addr())
		n.Peers = append(n.Peers, store.PodNetworkPeer{Endpoint: p.Endpoint, CIDRs: p.Networks})
		for _, network := range p.Networks {
			others = append(others, router.NodeRoute{Network: network, Node: p.Endpoint.Addr()})
		}
	}
	if err := setPodNetwork(r.dirs, n); err != nil {
		return nil, err
	}
	if err := r.connect(n); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.nodes = nodes
	r.mu.Unlock()
	unreached = errors.Join(router.RouteNodes(r.address, networks, others), r.applyServices())
	if all := n.Others(); !slices.Equal(all, r.peers) { // Services have other endpoints then
		r.peers = all
		r.changed()
	}
	return unreached, nil
}

// connect connects the router with the node's network. Without pods there is no router; the supervisor of the first
// pod connects it.
func (r *routes) connect(n store.PodNetwork) error {
	lock, err := r.dirs.LockSharedResources()
	if err != nil {
		return err
	}
	defer lock.Close()
	user, file, err := podinit.OpenShared(r.dirs)
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	if user != nil {
		defer user.Close()
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return fmt.Errorf("find the router: %w", err)
	}
	to := router.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if pool, err := to.CurrentPool(); err != nil || !pool.V4.IsValid() { // the first pod has not prepared it
		return err
	}
	made, err := to.ConnectNode(n.Node, n.CIDRs)
	if made {
		r.router = 0 // SetPeers must follow, also if something fails now
	}
	if err != nil || st.Ino == r.router && slices.Equal(n.Others(), r.peers) {
		return err
	}
	if err := to.SetPeers(n.CIDRs, n.Others()); err != nil {
		return err
	}
	r.router = st.Ino
	return nil
}

// putServices gives the network of the node the cluster's Services.
func (r *routes) putServices(all []node.Service) error {
	c := toCatalog(all)
	r.mu.Lock()
	r.catalog = &c
	r.mu.Unlock()
	return r.applyServices()
}

// applyServices also makes what others have removed. The addresses of the node may have changed.
func (r *routes) applyServices() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.catalog == nil {
		return nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("list the node's addresses: %w", err)
	}
	addresses := []netip.Addr{r.address}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if ip := p.Addr(); err == nil && ip.Is4() && ip.IsGlobalUnicast() && ip != r.address {
			addresses = append(addresses, ip)
		}
	}
	return services.ApplyToNode(ownNetwork, addresses, r.nodes, *r.catalog)
}

// toCatalog returns the Services of a cluster with the endpoints that the cluster has chosen.
func toCatalog(all []node.Service) (c services.Catalog) {
	for _, s := range all {
		o := conversion.FromKubernetes(s.Service).Service
		next := services.Service{Namespace: s.Namespace, Name: s.Name, Addresses: services.ParseAddrs(o.ClusterIPs...), External: services.ParseAddrs(s.Spec.ExternalIPs...),
			Affinity: time.Duration(o.AffinitySeconds) * time.Second, LocalExternal: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal}
		for _, i := range s.Status.LoadBalancer.Ingress {
			if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
				next.External = append(next.External, services.ParseAddrs(i.IP)...)
			}
		}
		for _, p := range o.Ports {
			next.Ports = append(next.Ports, services.Port{Name: p.Name, Protocol: p.Protocol, Port: uint16(p.Port), NodePort: uint16(p.NodePort)})
		}
		if s.Endpoints != nil {
			for _, e := range s.Endpoints.List {
				p := services.Pod{Name: e.Address, Addresses: services.ParseAddrs(e.Address), Ready: true, Fixed: true, Remote: e.Remote}
				for _, port := range e.Ports {
					p.Ports = append(p.Ports, services.NamedPort{Name: port.Name, Protocol: port.Protocol, Port: uint16(port.Port)})
				}
				next.Fixed = append(next.Fixed, p)
			}
		}
		c.Services = append(c.Services, next)
	}
	return c
}

// removeRoutes removes from the node's network what an earlier run with --pod-network routed has made.
func removeRoutes(dirs store.Dirs) error {
	n, err := dirs.PodNetwork()
	if err != nil || !n.Node.IsValid() {
		return err
	}
	return errors.Join(router.DisconnectNode(), services.RemoveFromNode())
}
