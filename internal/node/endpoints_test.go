package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slice returns an EndpointSlice with the port http. Each endpoint is ADDRESS@NODE, or ADDRESS, and the conditions
// that differ from a ready endpoint's: "unready", "terminating" for one that still serves, "ended", "unknown".
func slice(name string, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}}}
	for _, text := range endpoints {
		place, state, _ := strings.Cut(text, " ")
		address, node, has := strings.Cut(place, "@")
		e := discoveryv1.Endpoint{Addresses: []string{address, "192.0.2.250"}}
		if has {
			e.NodeName, e.TargetRef = &node, &corev1.ObjectReference{Kind: "Pod", Name: "p"}
		}
		set := func(ready, serving, terminating bool) {
			e.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
		}
		switch state {
		case "":
			set(true, true, false)
		case "unready":
			set(false, false, false)
		case "terminating":
			set(false, true, true)
		case "ended":
			set(false, false, true)
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func TestEndpointsOf(t *testing.T) {
	names := slice("z", "www.example.org")
	names.AddressType = discoveryv1.AddressTypeFQDN
	headless := slice("a", "10.88.0.2@attic")
	headless.Labels[corev1.IsHeadlessService] = ""
	all := func(s ...*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice { return s }
	for _, c := range []struct {
		name   string
		ip     string
		policy corev1.ServiceInternalTrafficPolicy
		slices []*discoveryv1.EndpointSlice
		want   string // "!" after the addresses of other nodes
	}{
		{"ready ones, of all slices", "10.96.0.7", "", all(slice("b", "10.88.0.4@attic"), slice("a", "10.88.0.2@attic", "10.88.0.3@attic unready")), "10.88.0.2 10.88.0.4"},
		{"of other nodes", "10.96.0.7", "", all(slice("a", "10.88.0.2@attic", "10.88.0.2@cellar", "192.0.2.7")), "10.88.0.2 10.88.0.2! 192.0.2.7"},
		{"without conditions", "10.96.0.7", "", all(slice("a", "10.88.0.2@attic unknown")), "10.88.0.2"},
		{"a terminating one beside a ready one", "10.96.0.7", "", all(slice("a", "10.88.0.2@attic terminating", "10.88.0.3@attic")), "10.88.0.3"},
		{"terminating ones only", "10.96.0.7", "", all(slice("a", "10.88.0.2@attic terminating", "10.88.0.3@attic ended", "10.88.0.4@attic unready")), "10.88.0.2"},
		{"a terminating one of a headless Service", "None", "", all(slice("a", "10.88.0.2@attic terminating")), ""},
		{"of this node only", "10.96.0.7", corev1.ServiceInternalTrafficPolicyLocal, all(slice("a", "10.88.0.2@attic", "192.0.2.1@cellar", "192.0.2.2")), "10.88.0.2"},
		{"of this node only, which terminates", "10.96.0.7", corev1.ServiceInternalTrafficPolicyLocal, all(slice("a", "10.88.0.2@attic terminating", "192.0.2.1@cellar")), "10.88.0.2"},
		{"a headless Service has no traffic policy", "None", corev1.ServiceInternalTrafficPolicyLocal, all(slice("a", "10.88.0.2@attic", "192.0.2.1@cellar")), "10.88.0.2 192.0.2.1!"},
		{"the cluster's policy", "10.96.0.7", corev1.ServiceInternalTrafficPolicyCluster, all(slice("a", "192.0.2.1@cellar")), "192.0.2.1!"},
		{"labelled as those of a headless Service", "10.96.0.7", "", all(headless, slice("b", "10.88.0.4@attic")), "10.88.0.4"},
		{"of a headless Service", "None", "", all(headless), "10.88.0.2"},
		{"names of hosts", "10.96.0.7", "", all(names), ""},
		{"none", "10.96.0.7", "", nil, ""},
	} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: c.ip}}
		if c.policy != "" {
			s.Spec.InternalTrafficPolicy = &c.policy
		}
		endpoints, _ := endpointsOf(s, c.slices, "attic")
		var got []string
		for _, e := range endpoints.List {
			got = append(got, e.Address+map[bool]string{true: "!"}[e.Remote])
			if (e.Pod == "p") != (!e.Remote && e.Address != "192.0.2.7") {
				t.Errorf("%s: %s is pod %q", c.name, e.Address, e.Pod)
			}
			if fmt.Sprint(e.Ports) != "[{http TCP 8080}]" {
				t.Errorf("%s: ports %v", c.name, e.Ports)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestServicesOfAnotherProxy: a Service with the name of another proxy has no endpoints for connections, but for names.
func TestServicesOfAnotherProxy(t *testing.T) {
	for ip, want := range map[string]int{"10.96.0.7": 0, "None": 1} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{labelProxyName: "mine"}}, Spec: corev1.ServiceSpec{ClusterIP: ip}}
		endpoints, ready := endpointsOf(s, []*discoveryv1.EndpointSlice{slice("a", "10.88.0.2@attic")}, "attic")
		if len(endpoints.List) != want || len(ready) != want {
			t.Errorf("%s: %v and %v, want %d", ip, endpoints.List, ready, want)
		}
	}
}

// The agent's Services follow the API server's Services and EndpointSlices.
func TestCurrentServices(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}}
	bad := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "../web"}}
	away := fmt.Errorf("no route to host")
	for name, c := range map[string]struct {
		services, slices func(*serviceWatcher)
		want             string
	}{
		"nothing yet":         {nil, nil, "wait"},
		"EndpointSlices only": {nil, func(s *serviceWatcher) { s.endpointSlices.Replace(nil) }, "wait"},
		"Services only":       {func(s *serviceWatcher) { s.services.Replace([]*corev1.Service{service}) }, nil, "wait"},
		"no answer":           {func(s *serviceWatcher) { s.services.Failed(away) }, func(s *serviceWatcher) { s.endpointSlices.Failed(away) }, "go on"},
		"both": {func(s *serviceWatcher) { s.services.Replace([]*corev1.Service{service, bad}) }, func(s *serviceWatcher) {
			s.endpointSlices.Replace([]*discoveryv1.EndpointSlice{slice("a", "10.88.0.2")})
		}, "web: 10.88.0.2"},
		"Services without EndpointSlices": {func(s *serviceWatcher) { s.services.Replace([]*corev1.Service{service}) }, func(s *serviceWatcher) { s.endpointSlices.Failed(away) }, "web: unknown"},
		"no Services":                     {func(s *serviceWatcher) { s.services.Replace(nil) }, func(s *serviceWatcher) { s.endpointSlices.Replace(nil) }, ""},
		"a Service that has been deleted": {func(s *serviceWatcher) {
			s.services.Replace([]*corev1.Service{service})
			s.services.Event("DELETED", service)
		}, func(s *serviceWatcher) { s.endpointSlices.Replace(nil) }, ""},
		"a list after which nothing comes": {func(s *serviceWatcher) { s.services.Replace([]*corev1.Service{service}); s.services.Failed(away) }, func(s *serviceWatcher) { s.endpointSlices.Replace(nil) }, "web:"},
	} {
		var printed strings.Builder
		s := newServiceWatcher(&Agent{ErrOut: &printed, Node: &Registration{Name: "attic"}})
		for _, f := range []func(*serviceWatcher){c.services, c.slices} {
			if f != nil {
				f(s)
			}
		}
		all, _, ok := s.current()
		got := "wait"
		switch {
		case ok:
			var words []string
			for _, o := range all {
				words = append(words, o.Name+":")
				if o.Endpoints == nil {
					words = append(words, "unknown")
					continue
				}
				for _, e := range o.Endpoints.List {
					words = append(words, e.Address)
				}
			}
			got = strings.Join(words, " ")
		case s.services.isMissing():
			got = "go on"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWithdraw: a pod stops when it is no ready endpoint, or after a time.
func TestWithdraw(t *testing.T) {
	web := types.NamespacedName{Namespace: "default", Name: "web"}
	endpoint := func(node string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"10.88.0.2"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web"}}
	}
	terminating := endpoint("attic", true)
	terminating.Conditions.Terminating = new(true)
	ready := func(s *serviceWatcher, e discoveryv1.Endpoint) map[types.NamespacedName]bool {
		s.services.Replace([]*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site"}}})
		site := metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "site"}}
		s.endpointSlices.Replace([]*discoveryv1.EndpointSlice{{ObjectMeta: site, Endpoints: []discoveryv1.Endpoint{e}}})
		_, ready, _ := s.current()
		return ready
	}
	for name, c := range map[string]struct {
		before, after discoveryv1.Endpoint
		limit, want   time.Duration
	}{
		"it is no longer ready":             {endpoint("attic", true), endpoint("attic", false), time.Minute, time.Second},
		"it is published while it ends":     {endpoint("attic", true), terminating, time.Minute, time.Second},
		"it stays ready":                    {endpoint("attic", true), endpoint("attic", true), time.Minute, withdrawal},
		"it stays ready, and has less time": {endpoint("attic", true), endpoint("attic", true), 2 * time.Second, 2 * time.Second},
		"it is not ready":                   {endpoint("attic", false), endpoint("attic", false), time.Minute, 0},
		"it is on another node":             {endpoint("cellar", true), endpoint("cellar", true), time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServiceWatcher(&Agent{Node: &Registration{Name: "attic"}})
			s.setReady(ready(s, c.before))
			began := time.Now()
			go func() {
				time.Sleep(time.Second)
				s.setReady(ready(s, c.after))
			}()
			s.withdraw(t.Context(), web, c.limit)
			if after := time.Since(began); after != c.want {
				t.Errorf("%s: it stops after %v, not %v", name, after, c.want)
			}
			time.Sleep(time.Second)
		})
	}
}

// serviceStore is an Engine that counts how often the Services are stored.
type serviceStore struct {
	Engine
	stored atomic.Int32
}

func (e *serviceStore) PutServices(context.Context, []Service) error {
	e.stored.Add(1)
	return nil
}

// TestServiceChanges: two changes are stored at once, further ones a second after the one before the last.
func TestServiceChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &serviceStore{}
		s := newServiceWatcher(&Agent{Engine: e, Node: &Registration{Name: "attic"}})
		ctx, cancel := context.WithCancel(t.Context())
		s.endpointSlices.Replace(nil)
		go s.run(ctx)
		for i, want := range []int32{1, 2, 2, 2} {
			s.services.Replace(nil)
			synctest.Wait()
			if got := e.stored.Load(); got != want {
				t.Errorf("after %d changes %d are stored, want %d", i+1, got, want)
			}
		}
		time.Sleep(servicePause)
		synctest.Wait()
		if got := e.stored.Load(); got != 3 {
			t.Errorf("after a second %d are stored", got)
		}
		cancel()
		synctest.Wait()
	})
}
