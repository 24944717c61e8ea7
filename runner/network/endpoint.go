package network

import (
	"errors"
	"net/netip"
	"reflect"
	"sync"

	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/pod"
)

// endpointPublisher tells others of a pod.
type endpointPublisher struct {
	mu     sync.Mutex
	wanted *pod.Presence // what they are to be told

	publishing sync.Mutex    // held while they are told
	published  *pod.Presence // what they know
}

// set sets what others are to be told next.
func (c *endpointPublisher) set(is *pod.Presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = is
}

// latest is what they are to be told.
func (c *endpointPublisher) latest() *pod.Presence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// SetEndpoint sets what others are to be told of the pod. Without a status it is as ready as it was.
func (n *Network) SetEndpoint(plan *pod.Plan, st *pod.Status) {
	was := n.publisher.latest()
	n.publisher.set(n.currentEndpoint(plan, st != nil && isReady(st) || st == nil && was != nil && was.Ready))
}

// isReady says whether a pod is an endpoint (kubelet and the endpoint slice controller of
// Kubernetes: Ready, and not about to end).
func isReady(st *pod.Status) bool {
	for _, c := range st.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && !st.Deleting
		}
	}
	return false
}

// currentEndpoint is what others are told of the pod as it is now.
func (n *Network) currentEndpoint(plan *pod.Plan, ready bool) *pod.Presence {
	is := newEndpoint(plan, n.Addresses(), ready)
	is.Stack = n.stack != nil
	return is
}

// newEndpoint is what others are told.
func newEndpoint(plan *pod.Plan, addresses []netip.Addr, ready bool) *pod.Presence {
	is := &pod.Presence{
		UID: plan.UID, Hostname: plan.Hostname, Subdomain: plan.Subdomain, Labels: plan.Labels,
		Addresses: AddrStrings(addresses), Ready: ready,
	}
	for _, p := range plan.Ports {
		if p.Name != "" {
			is.Ports = append(is.Ports, pod.Port{Name: p.Name, Protocol: p.Protocol, Number: p.Number})
		}
	}
	return is
}

// PublishEndpoint tells others what they are to be told.
func (n *Network) PublishEndpoint() error {
	c := &n.publisher
	c.publishing.Lock()
	defer c.publishing.Unlock()
	is := c.latest()
	if reflect.DeepEqual(c.published, is) {
		return nil
	}
	if err := n.store.WriteEndpoint(is); err != nil {
		return err
	}
	c.published = is
	return n.UpdateServices()
}

// UpdateServices makes the router lead connections to Services to the pods there are now.
func (n *Network) UpdateServices() error {
	lock, err := n.store.ServicesLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	if err := n.renumberServices(); !OnlyDamaged(err) {
		return err
	}
	d, damaged := readServiceTargets(n.store)
	if !OnlyDamaged(damaged) {
		return damaged
	}
	if err := n.Ports.updateNodePorts(n, d.NodePorts(n.store.Namespace, n.store.Name)); err != nil {
		n.Warn("a NodePort of a Service does not reach the pod: " + err.Error())
	}
	_, err = services.Apply(n.router(), n.Pool.ServiceRanges(), d)
	return errors.Join(damaged, err)
}

// renumberServices gives Services the addresses of the network that there is: it may be another
// than when they were made, before the machine has got a route to the old one.
func (n *Network) renumberServices() error {
	networks := pod.Networks(n.Pool)
	stale := func() (list []*pod.Object, err error) {
		all, err := n.store.AllServices()
		for _, o := range all {
			if o.Service != nil && networks.Renumber(o.Service) {
				list = append(list, o)
			}
		}
		return list, err
	}
	if list, err := stale(); len(list) == 0 {
		return err
	}
	lock, err := n.store.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	list, damaged := stale() // as they are now that nobody changes them
	for _, o := range list {
		if err := n.store.PutService(o); err != nil {
			return err
		}
	}
	return damaged
}
