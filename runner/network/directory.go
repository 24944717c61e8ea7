package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/pod"
)

// viewTTL is for how long a look at the user's pods and Services serves those who ask
// for names, unless somebody has told of a change: there may be one of which nobody tells,
// a pod's sudden end.
const viewTTL = time.Second

// serviceView is what a supervisor knows of its user's pods and Services: it reads what
// commands have kept and what other supervisors tell, in files. Nobody has to live for it.
type serviceView struct {
	mu     sync.Mutex
	readAt time.Time
	stamp  store.EndpointVersion
	view   *dns.View
}

// view is what is known now, as this pod sees it: the same as before if nothing has changed, or
// if this process has nothing left to look with.
func (n *Network) view() *dns.View {
	d := &n.services
	d.mu.Lock()
	defer d.mu.Unlock()
	stamp := n.store.EndpointVersion() // before all that is read
	if d.view != nil && stamp == d.stamp && time.Since(d.readAt) < viewTTL {
		return d.view
	}
	v := &dns.View{Namespace: n.store.Namespace, Ranges: []netip.Prefix{n.Pool.V4, n.Pool.V6}}
	if n.plan.HostLoopback {
		v.Host = []netip.Addr{ipam.HostLoopback.V4, ipam.HostLoopback.V6}
	}
	var err error
	if v.Directory, err = readDirectory(n.store); err != nil { // what is damaged is left out
		fmt.Fprintln(os.Stderr, err)
	}
	d.readAt, d.stamp = time.Now(), stamp
	if d.view != nil && store.IsExhausted(err) {
		return d.view
	}
	if len(n.Addresses()) == 1 { // this kernel has no IPv6: clients would try it first
		for i := range v.Services {
			v.Services[i].Addresses = slices.DeleteFunc(v.Services[i].Addresses, netip.Addr.Is6)
		}
	}
	if !reflect.DeepEqual(d.view, v) {
		d.view = v
	}
	return d.view
}

// readDirectory reads what there is of Services and pods. Where Services are damaged the error
// is store.Damaged, and the rest is given.
func readDirectory(at store.Pod) (services.Directory, error) {
	objects, damaged := at.AllServices()
	return addPods(at, objects, damaged)
}

// readServiceTargets is readDirectory for who leads connections: without a Service nobody stands behind
// one, and a user's pods need not be read, who may be many.
func readServiceTargets(at store.Pod) (services.Directory, error) {
	objects, damaged := at.AllServices()
	if len(objects) == 0 {
		return services.Directory{}, damaged
	}
	return addPods(at, objects, damaged)
}

// OnlyDamaged says whether everything was read but what is damaged.
func OnlyDamaged(err error) bool { return err == nil || errors.As(err, new(store.CorruptError)) }

// addPods are Services with the user's pods, of whom they choose theirs.
func addPods(at store.Pod, objects []*pod.Object, damaged error) (services.Directory, error) {
	var d services.Directory
	neighbours, err := at.Peers()
	if err != nil {
		return d, err
	}
	for _, n := range neighbours {
		d.Pods = append(d.Pods, toServicePod(n))
	}
	for _, o := range objects {
		d.Services = append(d.Services, toService(o))
	}
	return d, damaged
}

func toServicePod(n store.Peer) services.Pod {
	p := services.Pod{
		Namespace: n.Namespace, Name: n.Name, Hostname: n.Hostname, Subdomain: n.Subdomain,
		Labels: n.Labels, Ready: n.Ready, UserSpaceStack: n.Stack, Addresses: parseAddrs(n.Addresses),
	}
	for _, port := range n.Ports {
		p.Ports = append(p.Ports, services.NamedPort{Name: port.Name, Protocol: port.Protocol, Port: uint16(port.Number)})
	}
	return p
}

func toService(o *pod.Object) services.Service {
	s := services.Service{Namespace: o.Namespace, Name: o.Name}
	if o.Service == nil {
		return s
	}
	s.Selector, s.PublishNotReady, s.AffinitySeconds = o.Service.Selector, o.Service.PublishNotReady, int(o.Service.AffinitySeconds)
	if o.Service.Type == pod.ServiceExternalName {
		s.ExternalName = o.Service.ExternalName
	} else {
		s.Addresses = parseAddrs(o.Service.ClusterIPs)
	}
	for _, p := range o.Service.Ports {
		s.Ports = append(s.Ports, services.Port{
			Name: p.Name, Protocol: p.Protocol, Port: uint16(p.Port), Target: uint16(p.TargetPort), TargetName: p.TargetName, NodePort: uint16(p.NodePort),
		})
	}
	return s
}

// parseAddrs leaves out what is no address: the None of a headless Service.
func parseAddrs(texts []string) []netip.Addr {
	var list []netip.Addr
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			list = append(list, a)
		}
	}
	return list
}
