package runner

import (
	"errors"
	"net/netip"
	"reflect"
	"sync"

	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/pod"
)

// crier tells others of a pod.
type crier struct {
	mu     sync.Mutex
	wanted *pod.Presence // what they are to be told

	telling sync.Mutex    // held while they are told
	told    *pod.Presence // what they know
}

// want sets what others are to be told next.
func (c *crier) want(is *pod.Presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = is
}

// latest is what they are to be told.
func (c *crier) latest() *pod.Presence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// wantPresence sets what others are to be told of the pod. Without a status it is as ready as it was.
func (n *network) wantPresence(plan *pod.Plan, st *pod.Status) {
	was := n.crier.latest()
	n.crier.want(n.presence(plan, st != nil && ready(st) || st == nil && was != nil && was.Ready))
}

// ready says whether a pod is an endpoint (kubelet and the endpoint slice controller of
// Kubernetes: Ready, and not about to end).
func ready(st *pod.Status) bool {
	for _, c := range st.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && !st.Deleting
		}
	}
	return false
}

// presence is what others are told of the pod as it is now.
func (n *network) presence(plan *pod.Plan, ready bool) *pod.Presence {
	is := presence(plan, n.addresses(), ready)
	is.Stack = n.stack != nil
	return is
}

// presence is what others are told.
func presence(plan *pod.Plan, addresses []netip.Addr, ready bool) *pod.Presence {
	is := &pod.Presence{
		UID: plan.UID, Hostname: plan.Hostname, Subdomain: plan.Subdomain, Labels: plan.Labels,
		Addresses: texts(addresses), Ready: ready,
	}
	for _, p := range plan.Ports {
		if p.Name != "" {
			is.Ports = append(is.Ports, pod.Port{Name: p.Name, Protocol: p.Protocol, Number: p.Number})
		}
	}
	return is
}

// tell tells others what they are to be told.
func (n *network) tell() error {
	c := &n.crier
	c.telling.Lock()
	defer c.telling.Unlock()
	is := c.latest()
	if reflect.DeepEqual(c.told, is) {
		return nil
	}
	if err := n.store.WriteEndpoint(is); err != nil {
		return err
	}
	c.told = is
	return n.lead()
}

// lead makes the router lead connections to Services to the pods there are now.
func (n *network) lead() error {
	lock, err := n.store.ServicesLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	if err := n.renumber(); !known(err) {
		return err
	}
	d, damaged := readLeads(n.store)
	if !known(damaged) {
		return damaged
	}
	if err := n.ports.lead(n, d.NodePorts(n.store.Namespace, n.store.Name)); err != nil {
		n.warn("a Service's port of the machine does not lead to the pod: " + err.Error())
	}
	_, err = services.Apply(n.router(), n.pool.ServiceRanges(), d)
	return errors.Join(damaged, err)
}

// renumber gives Services the addresses of the network that there is: it may be another
// than when they were made, before the machine has got a route to the old one.
func (n *network) renumber() error {
	networks := pod.Networks(n.pool)
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
