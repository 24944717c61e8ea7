package network

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/services"
)

// The view stays the same until something changes, and a process without free descriptors keeps it.
func TestViewIsKept(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	tell := func(name string) (store.Pod, *os.File) {
		p := dirs.Pod("ns", name)
		lock, err := p.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Create(&pod.Plan{Name: name}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteEndpoint(&pod.Endpoint{UID: name, Addresses: []string{"10.88.0.2"}}); err != nil {
			t.Fatal(err)
		}
		return p, lock
	}
	a, alive := tell("a")
	defer alive.Close()
	b, dies := tell("b")
	o := &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Service: &pod.Service{ClusterIPs: []string{"10.88.128.1", "fd88::8001"}}}
	if err := dirs.PutObject(o); err != nil {
		t.Fatal(err)
	}
	pool := ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}
	s := &Network{store: a, plan: &pod.Plan{}, Pool: pool, Slot: 1}
	first := s.view()
	if len(first.Pods) != 2 || len(first.Services) != 1 {
		t.Fatalf("%+v", first)
	}
	again := func() bool {
		s.services.readAt = time.Time{}
		return s.view() == first
	}
	if err := b.WriteEndpoint(&pod.Endpoint{UID: "b", Addresses: []string{"10.88.0.2"}}); err != nil {
		t.Fatal(err)
	}
	if !again() {
		t.Error("it is made again of what is the same")
	}
	testenv.WithDescriptors(t, 0, func() {
		if !again() {
			t.Error("it is forgotten")
		}
	})
	dies.Close()
	if again() || len(s.view().Pods) != 1 {
		t.Errorf("a pod that has ended: %+v", s.view())
	}
}

// A Service of a cluster has the addresses and the endpoints that the cluster gives it, as far as pods reach them.
func TestClusterServices(t *testing.T) {
	terminating := pod.ServiceEndpoint{Address: "10.88.0.4", Pod: "c"}
	moved, dead := pod.ServiceEndpoint{Address: "10.88.0.77", Pod: "a"}, pod.ServiceEndpoint{Address: "10.88.0.5", Pod: "b"}
	local, host, otherPod, otherHost := pod.ServiceEndpoint{Address: "10.88.0.2"}, pod.ServiceEndpoint{Address: "192.0.2.1"},
		pod.ServiceEndpoint{Address: "10.88.0.3", Remote: true}, pod.ServiceEndpoint{Address: "192.0.2.2", Remote: true}
	for _, c := range []struct {
		name      string
		ips       []string
		endpoints []pod.ServiceEndpoint
		want      string // addresses of the Service, and its endpoints
	}{
		{"of a pod of this host", []string{"10.96.0.7"}, []pod.ServiceEndpoint{local}, "10.96.0.7: 10.88.0.2"},
		{"of a pod of another node", []string{"10.96.0.7"}, []pod.ServiceEndpoint{otherPod}, "10.96.0.7:"},
		{"of hosts", []string{"10.96.0.7"}, []pod.ServiceEndpoint{host, otherHost}, "10.96.0.7: 192.0.2.1 192.0.2.2"},
		{"of all", []string{"10.96.0.7"}, []pod.ServiceEndpoint{otherHost, local, otherPod, host}, "10.96.0.7: 10.88.0.2"},
		{"of all, without an address", []string{"None"}, []pod.ServiceEndpoint{otherHost, local, otherPod}, ": 192.0.2.2 10.88.0.2"},
		{"of a pod whose address has changed", []string{"10.96.0.7"}, []pod.ServiceEndpoint{moved}, "10.96.0.7: 10.88.0.2"},
		{"of a pod that has ended", []string{"10.96.0.7"}, []pod.ServiceEndpoint{dead}, "10.96.0.7:"},
		{"of a pod that is being deleted, and another", []string{"10.96.0.7"}, []pod.ServiceEndpoint{terminating, moved}, "10.96.0.7: 10.88.0.2"},
		{"of a pod that is being deleted", []string{"10.96.0.7"}, []pod.ServiceEndpoint{terminating}, "10.96.0.7: 10.88.0.4"},
		{"none", []string{"10.96.0.7"}, nil, "10.96.0.7:"},
		{"two families, of which the endpoints have one", []string{"10.96.0.7", "fd00:96::7"}, []pod.ServiceEndpoint{local}, "10.96.0.7: 10.88.0.2"},
		{"an address of this host's pods", []string{"10.88.0.2"}, []pod.ServiceEndpoint{local}, ": 10.88.0.2"},
	} {
		dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
		for _, o := range []*pod.Object{
			{Kind: pod.KindService, Namespace: "ns", Name: "web", Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{Selector: map[string]string{"app": "web"}, ClusterIPs: c.ips},
				Endpoints: &pod.Endpoints{Service: "web", List: c.endpoints}},
			{Kind: pod.KindEndpointSlice, Namespace: "ns", Name: "web", Endpoints: &pod.Endpoints{Service: "web", List: []pod.ServiceEndpoint{{Address: "192.0.2.99"}}}},
			{Kind: pod.KindService, Namespace: "ns", Name: "own", Service: &pod.Service{}},
		} {
			if err := dirs.PutObject(o); err != nil {
				t.Fatal(err)
			}
		}
		a := dirs.Pod("ns", "a")
		for p, is := range map[store.Pod]*pod.Endpoint{a: {Addresses: []string{"10.88.0.2", "fd88::2"}}, dirs.Pod("ns", "c"): {Addresses: []string{"10.88.0.4", "fd88::4"}, Terminating: true}} {
			lock, err := p.Lock()
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := errors.Join(p.Create(&pod.Plan{Name: p.Name}, nil), p.WriteEndpoint(is)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := readCatalog(a, ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}, &pod.Plan{ClusterServices: true})
		if err != nil {
			t.Fatal(err)
		}
		s := d.Services[1]
		words := []string{strings.Join(AddrStrings(s.Addresses), " ") + ":"}
		for _, p := range s.Fixed {
			words = append(words, p.Name)
		}
		if got := strings.Join(words, " "); got != c.want || len(s.Selector) > 0 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A pod of a cluster sees the cluster's Services, a pod of the user the user's, and one that reaches the cluster both.
func TestVisibleServices(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	for _, o := range []struct {
		dirs store.Dirs
		o    *pod.Object
	}{
		{dirs, &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Service: &pod.Service{ClusterIPs: []string{"10.88.128.1"}}}},
		{dirs.OfCluster(), &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{ClusterIPs: []string{"10.96.0.1"}}}},
		{dirs.OfCluster(), &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "db", Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{ClusterIPs: []string{"10.96.0.2"}}}},
	} {
		if err := o.dirs.PutObject(o.o); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		plan pod.Plan
		want string
	}{
		"of the user":                            {pod.Plan{}, "10.88.128.1"},
		"of the user, which reaches the cluster": {pod.Plan{ClusterServices: true}, "10.88.128.1 10.96.0.2"},
		"of the cluster":                         {pod.Plan{Cluster: &pod.Cluster{}}, "10.96.0.2 10.96.0.1"},
	} {
		d, err := readCatalog(dirs.Pod("ns", "a"), ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}, &c.plan)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range d.Services {
			got = append(got, AddrStrings(s.Addresses)...)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("a pod %s sees %v, want %s", name, got, c.want)
		}
	}
}

// A pod of a cluster without a name server of its own has podrun's resolver in its place.
func TestClusterResolver(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	address := func(plan *pod.Plan) string {
		n := &Network{store: dirs.Pod("ns", "a"), plan: plan, resolver: netip.MustParseAddr("10.88.0.1")}
		v := n.view()
		i := slices.IndexFunc(v.Services, func(s services.Service) bool { return s.Namespace == "kube-system" && s.Name == "kube-dns" })
		if i < 0 {
			return ""
		}
		return strings.Join(AddrStrings(v.Services[i].Addresses), " ")
	}
	if got := address(&pod.Plan{}); got != "" {
		t.Errorf("the user's pods see it at %s", got)
	}
	if got := address(&pod.Plan{Cluster: &pod.Cluster{}}); got != "10.88.0.1" {
		t.Errorf("it is at %q", got)
	}
	o := &pod.Object{Kind: pod.KindService, Namespace: "kube-system", Name: "kube-dns", Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{ClusterIPs: []string{"10.96.0.10"}}}
	if err := dirs.OfCluster().PutObject(o); err != nil {
		t.Fatal(err)
	}
	if got := address(&pod.Plan{Cluster: &pod.Cluster{}}); got != "10.96.0.10" {
		t.Errorf("the cluster's own is at %q", got)
	}
}

// Where the nodes route, nodes are endpoints as pods are: also this one, with a pod that has its network.
func TestClusterServicesOfRoutedNodes(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	list := []pod.ServiceEndpoint{{Address: "10.87.0.1", Pod: "host"}, {Address: "10.87.0.2", Remote: true}, {Address: "10.244.2.9", Remote: true}, {Address: "10.244.3.9", Remote: true}}
	o := &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{ClusterIPs: []string{"10.96.0.7"}},
		Endpoints: &pod.Endpoints{Service: "web", List: list}}
	if err := dirs.PutObject(o); err != nil {
		t.Fatal(err)
	}
	is := store.PodNetwork{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, Node: netip.MustParseAddr("10.87.0.1"),
		Peers: []store.PodNetworkPeer{{Endpoint: netip.MustParseAddrPort("10.87.0.2:0"), CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}}}}
	if _, err := dirs.SetPodNetwork(is); err != nil {
		t.Fatal(err)
	}
	pool := withNode(ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}, is)
	p := dirs.Pod("ns", "a")
	c, err := readServiceTargets(p, pool)
	if err != nil || len(c.Services) != 1 {
		t.Fatalf("%+v: %v", c.Services, err)
	}
	var got []string
	for _, e := range c.Services[0].Fixed {
		got = append(got, e.Name)
		if e.Outside {
			t.Errorf("%s is outside", e.Name)
		}
	}
	if want := "10.87.0.1 10.87.0.2 10.244.2.9"; strings.Join(got, " ") != want {
		t.Errorf("endpoints %v, want %s", got, want)
	}
	if ips := (&Network{store: p}).HostIPs(); len(ips) != 1 || ips[0] != "10.87.0.1" {
		t.Errorf("the host has %v", ips)
	}
}
