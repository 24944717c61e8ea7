package network

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/services"
)

// viewTTL is how long a view of the user's pods and Services serves DNS queries if no change is published.
// Some changes are never published, such as the sudden end of a pod.
const viewTTL = time.Second

// serviceView is a supervisor's view of its user's pods and Services. It reads files that commands and
// other supervisors have written, so that no other process needs to run.
type serviceView struct {
	mu     sync.Mutex
	readAt time.Time
	stamp  store.EndpointVersion
	view   *dns.View

	turn atomic.Uint32 // counts connections to endpoints outside, which take turns

	clientsOnce sync.Once
	clients     *services.Clients // see affinityClients
}

// affinityClients returns the clients of Services that stay with their pods.
func (n *Network) affinityClients() *services.Clients {
	n.services.clientsOnce.Do(func() { n.services.clients = services.NewClients(n.router()) })
	return n.services.clients
}

// view returns the current view as this pod sees it, for DNS queries.
func (n *Network) view() *dns.View { return n.viewWithin(viewTTL) }

// viewWithin returns the view as this pod sees it. It returns the previous view if that is not older than maxAge
// and no change was published since, or if this process has no free descriptors to read the files.
func (n *Network) viewWithin(maxAge time.Duration) *dns.View {
	d := &n.services
	d.mu.Lock()
	defer d.mu.Unlock()
	stamp := n.store.EndpointVersion() // before everything else is read
	if d.view != nil && stamp == d.stamp && time.Since(d.readAt) < maxAge {
		return d.view
	}
	v := &dns.View{Namespace: n.store.Namespace, Domain: n.plan.ClusterDomain(), Ranges: n.Pool.Prefixes(), OtherNodes: n.plan.InCluster()}
	if n.plan.HostLoopback {
		v.Host = []netip.Addr{ipam.HostLoopback.V4, ipam.HostLoopback.V6}
	}
	var err error
	if v.Catalog, err = readCatalog(n.store, n.Pool, n.plan); err != nil { // damaged objects are left out
		fmt.Fprintln(os.Stderr, err)
	}
	d.readAt, d.stamp = time.Now(), stamp
	if d.view != nil && store.IsExhausted(err) {
		return d.view
	}
	if len(n.Addresses()) == 1 { // this kernel has no IPv6: clients would try an IPv6 address first
		for i := range v.Services {
			v.Services[i].Addresses = slices.DeleteFunc(v.Services[i].Addresses, netip.Addr.Is6)
		}
	}
	if n.plan.InCluster() {
		addClusterResolver(&v.Catalog, n.resolver)
	}
	if !reflect.DeepEqual(d.view, v) {
		d.view = v
	}
	return d.view
}

// addClusterResolver adds the Service of a cluster's name server, unless the cluster has one: configurations such as nginx's name it.
func addClusterResolver(c *services.Catalog, resolver netip.Addr) {
	s := services.Service{Namespace: "kube-system", Name: "kube-dns", Addresses: []netip.Addr{resolver},
		Ports: []services.Port{{Name: "dns", Protocol: "UDP", Port: 53}, {Name: "dns-tcp", Protocol: "TCP", Port: 53}}}
	if !slices.ContainsFunc(c.Services, func(o services.Service) bool { return o.Namespace == s.Namespace && o.Name == s.Name }) {
		c.Services = append(c.Services, s)
	}
}

// readCatalog reads the Services that a pod sees, and the existing pods. A pod of a cluster sees the Services of the
// cluster. The user's pods see the user's, and those that reach the cluster all; of two with the same name, the user's.
// If Services are damaged, readCatalog returns the others and a store.CorruptError.
func readCatalog(p store.Pod, pool ipam.Pool, plan *pod.Plan) (services.Catalog, error) {
	objects, damaged := p.AllServices() // the user's first
	user := map[[2]string]bool{}
	objects = slices.DeleteFunc(objects, func(o *pod.Object) bool {
		name := [2]string{o.Namespace, o.Name}
		user[name] = user[name] || !o.IsFromCluster()
		if o.IsFromCluster() {
			return !plan.ReachesCluster() || !plan.InCluster() && user[name]
		}
		return plan.InCluster()
	})
	return catalogOf(p, pool, objects, damaged)
}

// readServiceTargets is readCatalog for the publisher of connections to Services: without a Service it
// does not read the user's pods, which may be many.
func readServiceTargets(p store.Pod, pool ipam.Pool) (services.Catalog, error) {
	objects, damaged := p.AllServices()
	if len(objects) == 0 {
		return services.Catalog{}, damaged
	}
	return catalogOf(p, pool, objects, damaged)
}

// OnlyDamaged reports whether everything but damaged objects was read.
func OnlyDamaged(err error) bool { return err == nil || errors.As(err, new(store.CorruptError)) }

// catalogOf returns the catalog of Services and the user's pods, from which Services select theirs.
func catalogOf(p store.Pod, pool ipam.Pool, objects []*pod.Object, damaged error) (services.Catalog, error) {
	var d services.Catalog
	neighbours, err := p.Peers()
	if err != nil {
		return d, err
	}
	for _, n := range neighbours {
		d.Pods = append(d.Pods, toServicePod(n))
	}
	cluster, err := p.PodNetwork()
	damaged = errors.Join(damaged, err)
	peers := cluster.Others()
	inside := func(a netip.Addr) bool { return pool.Contains(a) || isIn(peers, a) }
	fixed := false
	for _, o := range objects {
		s := toService(o)
		if o.IsFromCluster() {
			fixClusterService(&s, o, d.Pods, peers, pool)
		} else {
			fixed = fixed || o.Service != nil && len(o.Service.Selector) == 0
		}
		d.Services = append(d.Services, s)
	}
	if fixed {
		damaged = errors.Join(damaged, addFixed(&d, objects, p, inside))
	}
	return d, damaged
}

func isIn(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// fixClusterService gives a Service of a cluster the endpoints that the cluster has chosen, without those that pods of
// this host do not reach. pods are this host's pods, and peers what else the router leads to.
func fixClusterService(s *services.Service, o *pod.Object, pods []services.Pod, peers []netip.Prefix, pool ipam.Pool) {
	inside := func(a netip.Addr) bool { return pool.Contains(a) || isIn(peers, a) }
	s.Selector = nil
	hasAddress := len(s.Addresses) > 0
	s.Addresses = slices.DeleteFunc(s.Addresses, inside) // it may be the address of a pod, which would not be reached then
	if o.Endpoints == nil {
		return
	}
	var terminating []services.Pod // pods of this host: the API server learns later that they are ending
	for _, e := range o.Endpoints.List {
		local, lives := moveToPod(&e, o.Namespace, pods, pool)
		if !lives {
			continue
		}
		// Another node's network may have the same addresses as this host's. An address outside the pod networks
		// belongs to a host.
		if p := toFixedPod(s, e, inside); !e.Remote || p.Outside || slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool { return isIn(peers, a) }) {
			if local != nil && local.Terminating {
				terminating = append(terminating, p)
			} else {
				s.Fixed = append(s.Fixed, p)
			}
		}
	}
	if len(s.Fixed) == 0 { // as kube-proxy, which prefers a pod that is ending to none
		s.Fixed = terminating
	}
	// Of both kinds, those outside may be pods of nodes with another network, which are not reached.
	if hasAddress && slices.ContainsFunc(s.Fixed, func(p services.Pod) bool { return !p.Outside }) {
		s.Fixed = slices.DeleteFunc(s.Fixed, func(p services.Pod) bool { return p.Outside })
	}
	s.Addresses = usedAddresses(s)
}

// moveToPod gives an endpoint that is a pod of this host the pod's current address: it may have changed while the API
// server could not be reached. moveToPod returns the pod, and whether it is alive.
func moveToPod(e *pod.ServiceEndpoint, namespace string, pods []services.Pod, pool ipam.Pool) (local *services.Pod, lives bool) {
	address, err := netip.ParseAddr(e.Address)
	if e.Pod == "" || err != nil || !pool.Contains(address) { // it is no pod, or a pod in the host's network
		return nil, true
	}
	i := slices.IndexFunc(pods, func(p services.Pod) bool { return p.Namespace == namespace && p.Name == e.Pod })
	if i < 0 {
		return nil, false
	}
	for _, a := range pods[i].Addresses {
		if a.Is4() == address.Is4() {
			e.Address = a.String()
		}
	}
	return &pods[i], true
}

// addFixed adds the endpoints that objects name to the Services without a selector. stored are the Services.
func addFixed(d *services.Catalog, stored []*pod.Object, p store.Pod, inside func(netip.Addr) bool) error {
	objects, damaged := p.AllEndpoints()
	for i := range d.Services {
		s := &d.Services[i]
		for _, o := range objects {
			if stored[i].IsFromCluster() || len(s.Selector) > 0 || s.ExternalName != "" || o.Endpoints.Service != s.Name || o.Namespace != s.Namespace {
				continue
			}
			for _, e := range o.Endpoints.List {
				s.Fixed = append(s.Fixed, toFixedPod(s, e, inside))
			}
		}
		s.Addresses = usedAddresses(s)
	}
	return damaged
}

// usedAddresses returns a Service's addresses, except of a family that none of its ready endpoints has: a client
// would try such an address in vain. Proxies reach endpoints of both families.
func usedAddresses(s *services.Service) []netip.Addr {
	used := slices.DeleteFunc(slices.Clone(s.Addresses), func(vip netip.Addr) bool {
		return !slices.ContainsFunc(s.Fixed, func(p services.Pod) bool {
			return (p.Ready || s.PublishNotReady) && (p.Outside || slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool { return a.Is4() == vip.Is4() }))
		})
	})
	if len(used) == 0 {
		return s.Addresses
	}
	return used
}

// toFixedPod returns an endpoint that an object names. inside reports whether the router leads to an address.
func toFixedPod(s *services.Service, e pod.ServiceEndpoint, inside func(netip.Addr) bool) services.Pod {
	p := services.Pod{Namespace: s.Namespace, Name: e.Address, Hostname: e.Hostname, Subdomain: s.Name, Ready: !e.NotReady, Addresses: services.ParseAddrs(e.Address), Fixed: true}
	p.Outside = slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool { return !inside(a) })
	for _, port := range e.Ports {
		p.Ports = append(p.Ports, services.NamedPort{Name: port.Name, Protocol: port.Protocol, Port: uint16(port.Port)})
	}
	return p
}

// outsideEndpoint returns an endpoint for a connection of the pod to a Service whose endpoints are outside the
// pods' network (egress.Config). If the NetworkPolicies do not allow the endpoint, it returns an unreachable
// address: the router's rules see only the address of the Service.
func (n *Network) outsideEndpoint(protocol string, dst netip.AddrPort) (netip.AddrPort, bool) {
	if !n.store.HadServices() {
		return netip.AddrPort{}, false
	}
	addresses := n.Pool.Addresses(n.Slot).V4
	if dst.Addr().Is6() {
		addresses = n.Pool.Addresses(n.Slot).V6
	}
	// Every change of what the result depends on is published, so the view may be of any age.
	to, ok := n.viewWithin(math.MaxInt64).Outside(addresses, protocol, dst, n.services.turn.Add(1), n.affinityClients())
	if ok && !n.allowsEgress(protocol, to) {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0), true
	}
	return to, ok
}

func toServicePod(n store.Peer) services.Pod {
	p := services.Pod{
		Namespace: n.Namespace, Name: n.Name, Hostname: n.Hostname, Subdomain: n.Subdomain,
		Labels: n.Labels, Ready: n.Ready, Terminating: n.Terminating, UserSpaceStack: n.Stack, ReachesCluster: n.InCluster || n.ReachesCluster, Addresses: services.ParseAddrs(n.Addresses...),
	}
	if n.InCluster {
		p.Labels = nil // no Service of the user selects it; the cluster chooses the endpoints of its own
	}
	for _, port := range n.Ports {
		p.Ports = append(p.Ports, services.NamedPort{Name: port.Name, Protocol: port.Protocol, Port: uint16(port.Number)})
	}
	return p
}

func toService(o *pod.Object) services.Service {
	s := services.Service{Namespace: o.Namespace, Name: o.Name, OfCluster: o.IsFromCluster()}
	if o.Service == nil {
		return s
	}
	s.Aliases = o.Service.Names
	s.Selector, s.PublishNotReady, s.Affinity = o.Service.Selector, o.Service.PublishNotReady, time.Duration(o.Service.AffinitySeconds)*time.Second
	if len(o.Service.Families) == 1 {
		s.Family = 4
		if o.Service.Families[0] == pod.IPv6 {
			s.Family = 6
		}
	}
	if o.Service.Type == pod.ServiceExternalName {
		s.ExternalName = o.Service.ExternalName
	} else {
		s.Addresses = services.ParseAddrs(o.Service.ClusterIPs...)
	}
	for _, p := range o.Service.Ports {
		s.Ports = append(s.Ports, services.Port{
			Name: p.Name, Protocol: p.Protocol, Port: uint16(p.Port), Target: uint16(p.TargetPort), TargetName: p.TargetName, NodePort: uint16(p.NodePort),
		})
	}
	return s
}
