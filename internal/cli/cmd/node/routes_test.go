package node

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/services"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// Only a node with an IPv4 address of its own routes, and only as root.
func TestNewRoutes(t *testing.T) {
	for _, a := range []string{"2001:db8::1", "192.0.2.77"} {
		if _, err := newRoutes(store.Dirs{}, netip.MustParseAddr(a)); err == nil {
			t.Errorf("the address %s is accepted", a)
		}
	}
}

// What was set last is known to the next agent, but not to an agent with another network.
func TestRoutesRemember(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	peers := []control.Peer{{Endpoint: netip.MustParseAddrPort("10.87.0.2:0"), Networks: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}}}
	networks := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}
	n := store.PodNetwork{CIDRs: networks, Node: netip.MustParseAddr("10.87.0.1"), Peers: []store.PodNetworkPeer{{Endpoint: peers[0].Endpoint, CIDRs: peers[0].Networks}}}
	if _, err := dirs.SetPodNetwork(n); err != nil {
		t.Fatal(err)
	}
	compare := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	got, gotPeers, err := (&routes{dirs: dirs}).Last()
	if err != nil || !cmp.Equal(got, networks, compare) || len(gotPeers) != 1 || gotPeers[0].Endpoint != peers[0].Endpoint {
		t.Errorf("%v, %v, %v", got, gotPeers, err)
	}
	if got, gotPeers, err := (&tunnel{dirs: dirs}).Last(); err != nil || !cmp.Equal(got, networks, compare) || len(gotPeers) > 0 {
		t.Errorf("with a tunnel: %v, %v, %v", got, gotPeers, err)
	}
}

// The Services of a node have the endpoints that the cluster has chosen, and the addresses of load balancers.
func TestToCatalog(t *testing.T) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}, ExternalIPs: []string{"192.0.2.9"}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
		SessionAffinity: corev1.ServiceAffinityClientIP, SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
		Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
	}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.87.0.1"}, {Hostname: "web.example"}, {IP: "192.0.2.10", IPMode: new(corev1.LoadBalancerIPModeProxy)}}
	headless := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "headless"}, Spec: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}}
	got := toCatalog([]node.Service{{Service: headless}, {Service: s, Endpoints: &pod.Endpoints{List: []pod.ServiceEndpoint{
		{Address: "10.244.2.9", Remote: true, Ports: []pod.EndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}}},
	}}}})
	address := func(text string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(text)} }
	want := services.Catalog{Services: []services.Service{{Namespace: "ns", Name: "headless"}, {
		Namespace: "ns", Name: "web", Addresses: address("10.96.0.7"), External: append(address("192.0.2.9"), address("10.87.0.1")...), LocalExternal: true, Affinity: time.Minute,
		Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30080}},
		Fixed: []services.Pod{{Name: "10.244.2.9", Addresses: address("10.244.2.9"), Ready: true, Fixed: true, Remote: true, Ports: []services.NamedPort{{Name: "http", Protocol: "TCP", Port: 8080}}}},
	}}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}
