package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
)

// newNodeNetwork returns the network of a pod of a user whose host has a part in a pod network.
func newNodeNetwork(t *testing.T, is store.PodNetwork) *Network {
	t.Helper()
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	if others, err := dirs.SetPodNetwork(is); err != nil || len(others) > 0 {
		t.Fatal(others, err)
	}
	return &Network{store: dirs.Pod("ns", "a"), plan: &pod.Plan{}}
}

func network(own string, others ...string) store.PodNetwork {
	n := store.PodNetwork{CIDRs: []netip.Prefix{netip.MustParsePrefix(own)}, MTU: 1420}
	for _, o := range others {
		n.Peers = append(n.Peers, store.PodNetworkPeer{CIDRs: []netip.Prefix{netip.MustParsePrefix(o)}})
	}
	return n
}

// Endpoints of Services that are pods of other nodes are inside: the router leads there.
func TestPeersAreInside(t *testing.T) {
	n := newNodeNetwork(t, network("10.244.1.0/24", "10.244.2.0/24"))
	service := &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Service: &pod.Service{ClusterIPs: []string{"10.88.128.1", "fd88::8001"}}}
	if err := n.store.PutService(service); err != nil {
		t.Fatal(err)
	}
	pool := withNode(ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}, network("10.244.1.0/24"))
	endpoints := &pod.Object{Kind: pod.KindEndpointSlice, Namespace: "ns", Name: "web-1", Endpoints: &pod.Endpoints{Service: "web"}}
	want := map[string]bool{"10.244.1.5": false, "10.244.2.5": false, "10.88.0.9": false, "10.244.3.5": true, "192.0.2.1": true}
	for a := range want {
		endpoints.Endpoints.List = append(endpoints.Endpoints.List, pod.ServiceEndpoint{Address: a})
	}
	if err := n.store.PutService(endpoints); err != nil {
		t.Fatal(err)
	}
	catalog, err := readCatalog(n.store, pool, &pod.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Services[0].Fixed {
		if p.Outside != want[p.Name] {
			t.Errorf("%s is outside: %v", p.Name, p.Outside)
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("these endpoints are missing: %v", want)
	}
}

// The addresses of the router and of Services differ from the addresses of the cluster's pods. A router that is older than
// the host's part in the cluster may have them; then no pod starts.
func TestPreparePool(t *testing.T) {
	n := newNodeNetwork(t, network("10.88.3.0/24", "10.89.1.0/24"))
	pool, err := n.preparePool(nettest.NewRouter(t))
	if err != nil || pool.V4.String() != "10.107.0.0/16" || pool.NodeV4.String() != "10.88.3.0/24" || pool.NodeMTU != 1420 {
		t.Errorf("%+v, %v", pool, err)
	}
	older := nettest.NewRouterBed(t)
	if _, err := n.preparePool(older.Router); err == nil || !strings.Contains(err.Error(), "10.88.3.0/24") {
		t.Errorf("with an older router: %v", err)
	}
}

// A pod that has a lease has the same addresses for the next supervisor.
func TestPoolOfLease(t *testing.T) {
	n := newNodeNetwork(t, network("10.244.1.0/24"))
	base := ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}
	n.Pool, n.Slot = withNode(base, network("10.244.1.0/24")), 7
	if err := n.store.Create(&pod.Plan{Name: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := n.writeLease(false); err != nil {
		t.Fatal(err)
	}
	had, err := n.store.Lease()
	if err != nil {
		t.Fatal(err)
	}
	next := &Network{store: n.store, plan: n.plan, Slot: n.Slot}
	if err := next.setPool(base, had); err != nil || next.Pool != n.Pool || next.Addresses()[0].String() != "10.244.1.8" {
		t.Errorf("%+v, %v", next.Pool, err)
	}
	had.Gateway = nil // of a pod of an earlier podrun
	if err := next.setPool(base, had); err != nil || next.Pool != base {
		t.Errorf("%+v, %v", next.Pool, err)
	}
}
