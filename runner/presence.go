package runner

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"sync"

	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/pod"
)

// crier tells others of a pod.
type crier struct {
	mu     sync.Mutex
	wanted *pod.Presence // what they are to be told
	gone   bool          // that there is no pod any more

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
func (c *crier) latest() (is *pod.Presence, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted, c.gone
}

// announce tells other pods of this one, if there is something new to tell, and has
// Services lead to it or not. Without a status it is as ready as it was.
func (e *engine) announce(st *pod.Status) {
	e.mu.Lock()
	s, plan := e.sandbox, e.plan
	if s == nil || s.slot == 0 {
		e.mu.Unlock()
		return
	}
	e.busy++
	e.mu.Unlock()
	was, _ := s.crier.latest()
	s.crier.want(s.presence(plan, st != nil && ready(st) || st == nil && was != nil && was.Ready))
	go func() {
		defer e.work(-1)
		if err := s.tell(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
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
func (s *sandbox) presence(plan *pod.Plan, ready bool) *pod.Presence {
	is := presence(plan, s.addresses(), ready)
	is.Stack = s.stack != nil
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
func (s *sandbox) tell() error {
	c := &s.crier
	c.telling.Lock()
	defer c.telling.Unlock()
	is, gone := c.latest()
	if gone || reflect.DeepEqual(c.told, is) {
		return nil
	}
	if err := s.store.WritePresence(is); err != nil {
		return err
	}
	c.told = is
	return s.lead()
}

// retire tells others that the pod has gone.
func (s *sandbox) retire() error {
	c := &s.crier
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.telling.Lock()
	defer c.telling.Unlock()
	if err := s.store.RemovePresence(); err != nil || !s.pool.V4.IsValid() {
		return err
	}
	return s.lead()
}

// lead makes the router lead connections to Services to the pods there are now.
func (s *sandbox) lead() error {
	lock, err := s.store.ServicesLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	if err := s.renumber(); !known(err) {
		return err
	}
	d, damaged := readLeads(s.store)
	if !known(damaged) {
		return damaged
	}
	if err := s.ports.lead(s, d.Nodes(s.store.Namespace, s.store.Name)); err != nil {
		s.warn("a Service's port of the machine does not lead to the pod: " + err.Error())
	}
	_, err = services.Apply(s.router(), s.pool.ServiceRanges(), d)
	return errors.Join(damaged, err)
}

// renumber gives Services the addresses of the network that there is: it may be another
// than when they were made, before the machine has got a route to the old one.
func (s *sandbox) renumber() error {
	networks := pod.Networks(s.pool)
	stale := func() (list []*pod.Object, err error) {
		all, err := s.store.AllServices()
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
	lock, err := s.store.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	list, damaged := stale() // as they are now that nobody changes them
	for _, o := range list {
		if err := s.store.PutService(o); err != nil {
			return err
		}
	}
	return damaged
}
