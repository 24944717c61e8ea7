package node

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/netns/wireguard/control"
)

// testKey returns a key, and its text.
func testKey(b byte) (control.Key, string) {
	k := control.Key{0: b}
	text, _ := k.MarshalText()
	return k, string(text)
}

// peerNode returns a node that was created as many minutes ago as its key says.
func peerNode(name string, key byte, endpoint string, cidrs ...string) *corev1.Node {
	_, text := testKey(key)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(-time.Duration(key) * time.Minute)),
		Annotations: map[string]string{annotationKey: text, annotationEndpoint: endpoint}}}
	n.Spec.PodCIDRs = cidrs
	return n
}

// Peers are the other nodes with valid annotations and networks of their own.
func TestPeersOf(t *testing.T) {
	ownNetworks := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:1::/64")}
	self, _ := testKey(1)
	without := peerNode("without", 9, "")
	without.Annotations = nil
	noKey := peerNode("no-key", 9, "192.0.2.9:51820", "10.244.9.0/24")
	noKey.Annotations[annotationKey] = "none"
	oneCIDR := peerNode("one", 9, "192.0.2.9:51820")
	oneCIDR.Spec.PodCIDR = "10.244.9.0/24"
	for _, c := range []struct {
		name     string
		nodes    []*corev1.Node
		peers    string
		problems string
	}{
		{"this node alone", []*corev1.Node{peerNode("self", 1, "192.0.2.1:51820", "10.244.1.0/24")}, "", ""},
		{"a node with another network", []*corev1.Node{without}, "", ""},
		{"a node without networks yet", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820")}, "", ""},
		{"two nodes", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "10.244.2.0/24", "fd00:2::/64"), peerNode("c", 3, "[2001:db8::3]:1", "10.244.3.0/24")},
			"[2001:db8::3]:1 [10.244.3.0/24]; 192.0.2.2:51820 [10.244.2.0/24 fd00:2::/64]", ""},
		{"the older field", []*corev1.Node{oneCIDR}, "192.0.2.9:51820 [10.244.9.0/24]", ""},
		{"no key", []*corev1.Node{noKey}, "", "no-key: annotation podrun.dev/wireguard-public-key: a WireGuard key has 32 bytes, in base64"},
		{"this node's key", []*corev1.Node{peerNode("b", 1, "192.0.2.2:51820", "10.244.2.0/24")}, "", "b: another node has the same public key"},
		{"the key of an older node", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "10.244.2.0/24"), peerNode("a", 2, "192.0.2.3:51820", "10.244.3.0/24")},
			"192.0.2.3:51820 [10.244.3.0/24]", "b: another node has the same public key"},
		{"this node's network", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "fd00:1::/64")}, "", "b: its networks for pods overlap the networks of another node"},
		{"the network of an older node", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "10.244.2.0/24"), peerNode("c", 3, "192.0.2.3:51820", "10.244.2.0/23")},
			"192.0.2.3:51820 [10.244.2.0/23]", "b: its networks for pods overlap the networks of another node"},
		{"a network for everything", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "128.0.0.0/1")}, "", "b: spec.podCIDRs of node b must be at most one IPv4 network (/16 or smaller) and one IPv6 network (/48 or smaller), not 128.0.0.0/1"},
		{"no network", []*corev1.Node{peerNode("b", 2, "192.0.2.2:51820", "10.244.2.1/24")}, "", "b: spec.podCIDRs of node b must be at most one IPv4 network (/16 or smaller) and one IPv6 network (/48 or smaller), not 10.244.2.1/24"},
		{"endpoints", []*corev1.Node{peerNode("b", 2, "", "10.244.2.0/24"), peerNode("c", 3, "attic:51820", "10.244.3.0/24"), peerNode("d", 4, "127.0.0.1:1", "10.244.4.0/24"),
			peerNode("e", 5, "0.0.0.0:1", "10.244.5.0/24"), peerNode("f", 6, "192.0.2.6:0", "10.244.6.0/24"), peerNode("g", 7, "[fe80::1%eth0]:1", "10.244.7.0/24")}, "",
			strings.Join(slices.Repeat([]string{": annotation podrun.dev/wireguard-endpoint: it is not the address and the port of a host"}, 6), "; ")},
	} {
		peers, problems := (&Network{Key: self}).peersOf(c.nodes, "self", ownNetworks, nil)
		var got, bad []string
		for _, p := range peers {
			var networks []string
			for _, n := range p.Networks {
				networks = append(networks, n.String())
			}
			got = append(got, p.Endpoint.String()+" ["+strings.Join(networks, " ")+"]")
		}
		for name, err := range problems {
			if c.name == "endpoints" {
				name = ""
			}
			bad = append(bad, name+": "+err.Error())
		}
		if strings.Join(got, "; ") != c.peers || strings.Join(bad, "; ") != c.problems {
			t.Errorf("%s:\npeers %q, want %q\nproblems %q, want %q", c.name, got, c.peers, bad, c.problems)
		}
	}
}

// routedNode returns a node that was created some minutes ago, with an InternalIP, unless that is empty.
func routedNode(name string, minutes int, address string, cidrs ...string) *corev1.Node {
	n := peerNode(name, byte(minutes), "", cidrs...)
	n.Annotations = nil
	if address != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"}, {Type: corev1.NodeInternalIP, Address: address}}
	}
	return n
}

// Nodes that route find each other by their addresses, also before they have networks.
func TestRoutedPeers(t *testing.T) {
	n := NewRoutedNetwork(&testTunnel{}, netip.MustParseAddr("10.87.0.1"))
	own := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}
	peers, problems := n.peersOf([]*corev1.Node{
		routedNode("self", 9, "10.87.0.1", "10.244.1.0/24"), routedNode("b", 8, "10.87.0.2", "10.244.2.0/24", "fd00:2::/64"), routedNode("c", 7, "10.87.0.3"),
		routedNode("d", 6, ""), routedNode("e", 5, "127.0.0.1", "10.244.5.0/24"), routedNode("f", 4, "10.87.0.2", "10.244.6.0/24"), routedNode("g", 3, "10.87.0.7", "10.244.2.0/25"),
		peerNode("h", 2, "10.87.0.8:51820", "10.244.8.0/24"),
	}, "self", own, nil)
	var got []string
	for _, p := range peers {
		got = append(got, fmt.Sprint(p.Endpoint.Addr(), p.Networks))
	}
	if want := "10.87.0.2 [10.244.2.0/24]; 10.87.0.3 []"; strings.Join(got, "; ") != want {
		t.Errorf("peers %q, want %q", got, want)
	}
	if len(problems) != 3 || problems["e"] != errAddress || problems["f"] != errSameIP || problems["g"] != errOverlap {
		t.Errorf("problems %v", problems)
	}
	if a := n.annotations(); a != nil {
		t.Errorf("annotations %v", a)
	}
}

// A node whose pods are routed has networks of IPv4 only. Peers that are not reached do not keep its pods from starting.
func TestRoutedNetworkUpdate(t *testing.T) {
	tunnel := &testTunnel{unreached: errors.New("no route to node b")}
	n := NewRoutedNetwork(tunnel, netip.MustParseAddr("10.87.0.1"))
	a := &Agent{Node: &Registration{Name: "self", Network: n, wakeup: make(chan struct{}, 1)}, ErrOut: io.Discard}
	(&nodeHandler{n}).Replace([]*corev1.Node{routedNode("self", 2, "10.87.0.1", "10.244.1.0/24", "fd00:1::/64"), routedNode("b", 1, "10.87.0.2", "10.244.2.0/24")})
	if err := n.update(a); err == nil || n.await(t.Context()) != nil || len(tunnel.own) != 1 || len(tunnel.peers) != 1 {
		t.Errorf("networks %v, peers %v: %v", tunnel.own, tunnel.peers, err)
	}
	if c := n.condition(); c.Status != corev1.ConditionFalse || c.Reason != "PodrunRoutes" || !strings.Contains(c.Message, "no route to node b") {
		t.Errorf("%+v", c)
	}
	tunnel.unreached = nil
	if err := n.update(a); err != nil || n.condition().Message != "pods of other nodes are reached by routes" {
		t.Errorf("%v, %+v", err, n.condition())
	}
}

// testTunnel records what it is given.
type testTunnel struct {
	own       []netip.Prefix
	peers     []control.Peer
	unreached error
	refused   error
}

func (t *testTunnel) Set(networks []netip.Prefix, peers []control.Peer) (unreached, err error) {
	if t.refused == nil {
		t.own, t.peers = networks, peers
	}
	return t.unreached, t.refused
}

func (t *testTunnel) Last() ([]netip.Prefix, []control.Peer, error) { return t.own, t.peers, nil }

// Pods start when the node has its networks and their addresses can be used; without the API server the last
// networks and peers stay.
func TestNetworkUpdate(t *testing.T) {
	var out strings.Builder
	key, _ := testKey(1)
	tunnel := &testTunnel{}
	n := NewNetwork(tunnel, key, netip.MustParseAddrPort("192.0.2.1:51820"))
	a := &Agent{Node: &Registration{Name: "self", Network: n, wakeup: make(chan struct{}, 1)}, ErrOut: &out}
	nodes := &nodeHandler{n}
	check := func(step string, wantErr string, status corev1.ConditionStatus, message string, peers int) {
		t.Helper()
		err := n.update(a)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v, want %q", step, err, wantErr)
		}
		if c := n.condition(); c.Status != status || !strings.Contains(c.Message, message) {
			t.Errorf("%s: condition %s %q, want %s %q", step, c.Status, c.Message, status, message)
		}
		if len(tunnel.peers) != peers {
			t.Errorf("%s: %d peers, want %d", step, len(tunnel.peers), peers)
		}
	}
	check("before anything is known", "no addresses for pods", corev1.ConditionTrue, "no addresses for pods", 0)
	nodes.Replace([]*corev1.Node{peerNode("self", 1, "192.0.2.1:51820", "10.244.1.0/24"), peerNode("b", 2, "192.0.2.2:51820", "10.244.2.0/24"), peerNode("c", 3, "nonsense", "10.244.3.0/24")})
	tunnel.refused = errors.New("pods with other addresses are running")
	check("while other pods run", "other addresses", corev1.ConditionTrue, "other addresses", 0)
	select {
	case <-n.assigned:
		t.Error("pods may start while others have other addresses")
	default:
	}
	tunnel.refused = nil
	check("when they have ended", "", corev1.ConditionFalse, "reached by WireGuard", 1)
	if err := n.await(t.Context()); err != nil {
		t.Error(err)
	}
	check("again", "", corev1.ConditionFalse, "reached by WireGuard", 1)
	if got := strings.Count(out.String(), "pods of node c are not reached"); got != 1 {
		t.Errorf("the node with an invalid annotation is reported %d times:\n%s", got, out.String())
	}
	nodes.Event(watch.Modified, peerNode("c", 3, "192.0.2.3:51820", "10.244.3.0/24"))
	check("with a mended annotation", "", corev1.ConditionFalse, "reached by WireGuard", 2)
	nodes.Event(watch.Deleted, peerNode("b", 2, "192.0.2.2:51820", "10.244.2.0/24"))
	check("without a deleted node", "", corev1.ConditionFalse, "reached by WireGuard", 1)
	got := n.withClusterIPs(&corev1.PodStatus{PodIP: "fd88::5", PodIPs: []corev1.PodIP{{IP: "fd88::5"}, {IP: "10.244.1.5"}}})
	if got.PodIP != "10.244.1.5" || len(got.PodIPs) != 1 {
		t.Errorf("a pod is reported with %s, %v", got.PodIP, got.PodIPs)
	}

	next := NewNetwork(tunnel, key, netip.MustParseAddrPort("192.0.2.1:51820")) // of the next agent, without the API server
	b := &Agent{Node: &Registration{Name: "self", Network: next, wakeup: make(chan struct{}, 1)}, ErrOut: &out}
	if err := next.update(b); err != nil || len(tunnel.peers) != 1 || next.await(t.Context()) != nil {
		t.Errorf("without the API server: %v, %d peers", err, len(tunnel.peers))
	}
	var h kubeapi.Handler[corev1.Node] = &nodeHandler{next}
	h.Failed(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no rule")))
	if err := next.update(b); err == nil || next.condition().Status != corev1.ConditionFalse || !strings.Contains(next.condition().Message, "may not be reached") {
		t.Errorf("without the right to read nodes: %v, %v", err, next.condition())
	}
}

// The annotations belong to the network, and go with it.
func TestAnnotations(t *testing.T) {
	key, text := testKey(1)
	r := &Registration{Name: "self", Network: NewNetwork(&testTunnel{}, key, netip.MustParseAddrPort("[2001:db8::1]:51820"))}
	n := &corev1.Node{}
	if !r.setMetadata(n, &Facts{}) || n.Annotations[annotationKey] != text || n.Annotations[annotationEndpoint] != "[2001:db8::1]:51820" || r.setMetadata(n, &Facts{}) {
		t.Errorf("annotations %v", n.Annotations)
	}
	n.Annotations["other"] = "stays"
	r.Network = nil
	if !r.setMetadata(n, &Facts{}) || len(n.Annotations) != 1 || r.setMetadata(n, &Facts{}) {
		t.Errorf("annotations without a network: %v", n.Annotations)
	}
}
