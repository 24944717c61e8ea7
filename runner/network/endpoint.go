package network

import (
	"errors"
	"net/netip"
	"reflect"
	"sync"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/netns/services"
)

// endpointPublisher publishes a pod's endpoint to the user's other pods.
type endpointPublisher struct {
	mu     sync.Mutex
	wanted *pod.Endpoint // the endpoint to publish

	publishing sync.Mutex    // held while an endpoint is published
	published  *pod.Endpoint // the endpoint that is published
}

// set sets the endpoint to publish next.
func (c *endpointPublisher) set(is *pod.Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = is
}

// latest returns the endpoint to publish.
func (c *endpointPublisher) latest() *pod.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// SetEndpoint sets the pod's endpoint; PublishEndpoint publishes it. With a nil status the readiness stays.
func (n *Network) SetEndpoint(plan *pod.Plan, st *pod.Status) {
	was := n.publisher.latest()
	is := n.currentEndpoint(plan, st != nil && isReady(st) || st == nil && was != nil && was.Ready)
	is.Terminating = st != nil && st.Deleting || st == nil && was != nil && was.Terminating
	n.publisher.set(is)
}

// isReady reports whether a pod is a ready endpoint: its condition is Ready, and it is not terminating (as for the
// endpoint slice controller of Kubernetes).
func isReady(st *pod.Status) bool {
	for _, c := range st.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && !st.Deleting
		}
	}
	return false
}

// currentEndpoint returns the pod's endpoint as it is now.
func (n *Network) currentEndpoint(plan *pod.Plan, ready bool) *pod.Endpoint {
	is := newEndpoint(plan, n.Addresses(), ready)
	is.Stack = n.stack != nil
	return is
}

// newEndpoint returns an endpoint with these values.
func newEndpoint(plan *pod.Plan, addresses []netip.Addr, ready bool) *pod.Endpoint {
	is := &pod.Endpoint{
		UID: plan.UID, InCluster: plan.InCluster(), ReachesCluster: plan.ReachesCluster(), Hostname: plan.Hostname, Subdomain: plan.Subdomain, Labels: plan.Labels,
		Addresses: AddrStrings(addresses), Ready: ready,
	}
	for _, p := range plan.Ports {
		if p.Name != "" {
			is.Ports = append(is.Ports, pod.Port{Name: p.Name, Protocol: p.Protocol, Number: p.Number})
		}
	}
	return is
}

// PublishEndpoint publishes the endpoint that was set.
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

// UpdateServices makes the router forward connections to Services to the current pods.
func (n *Network) UpdateServices() error {
	lock, err := n.store.LockServices()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := n.applyPolicies(n.listeningPorts); err != nil {
		n.WarnOfPolicies(err)
	}
	if err := n.renumberServices(); !OnlyDamaged(err) {
		return err
	}
	d, damaged := readServiceTargets(n.store, n.Pool)
	if !OnlyDamaged(damaged) {
		return damaged
	}
	if err := n.Ports.updateNodePorts(n, d.NodePorts(n.store.Namespace, n.store.Name)); err != nil {
		n.Warn("a NodePort of a Service does not reach the pod: " + err.Error())
	}
	_, err = services.Apply(n.router(), n.Pool.ServiceRanges(), d)
	return errors.Join(damaged, err)
}

// renumberServices gives Services addresses of the current network. The network has changed if the machine got a
// route to the previous one after the Services were made.
func (n *Network) renumberServices() error {
	networks := pod.Networks{V4: n.Pool.V4, V6: n.Pool.V6}
	stale := func() (list []*pod.Object, err error) {
		all, err := n.store.AllServices()
		for _, o := range all {
			if o.Service != nil && !o.IsFromCluster() && networks.Renumber(o.Service) {
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
	list, damaged := stale() // again, under the lock
	for _, o := range list {
		if err := n.store.PutService(o); err != nil {
			return err
		}
	}
	return damaged
}
