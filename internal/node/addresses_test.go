package node

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/nodetest"
)

// hostRoutesOfTest are the routes of a host: the default one, a VPN's for everything, and its own network.
var hostRoutesOfTest = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1"), netip.MustParsePrefix("::/0"),
	netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("192.168.1.7/32"), netip.MustParsePrefix("fd12::/64"),
}

func TestCheckNetwork(t *testing.T) {
	for network, want := range map[string]string{
		"10.96.0.10/32":   "",
		"172.16.0.0/16":   "",
		"10.244.1.0/24":   "",
		"100.64.0.0/24":   "",
		"fd00:96::1/128":  "",
		"8.8.8.8/32":      "8.8.8.8 is in no private range",
		"198.51.0.0/16":   "198.51.0.0/16 is in no private range",
		"127.0.0.1/32":    "127.0.0.1 is in no private range",
		"169.254.9.9/32":  "169.254.9.9 is in no private range",
		"2606:4700::/64":  "2606:4700::/64 is in no private range",
		"2001:db8::/64":   "",
		"203.0.113.9/32":  "",
		"203.0.113.0/16":  "203.0.113.0/16 is in no private range",
		"192.168.1.1/32":  "192.168.1.1 is in a network to which this host has a route: 192.168.1.0/24",
		"192.168.0.0/16":  "192.168.0.0/16 is in a network to which this host has a route: 192.168.1.0/24",
		"fd12::53/128":    "fd12::53 is in a network to which this host has a route: fd12::/64",
		"192.168.2.1/32":  "",
		"fd12:0:1::1/128": "",
	} {
		got := ""
		if err := checkNetwork(netip.MustParsePrefix(network), hostRoutesOfTest); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", network, got, want)
		}
	}
}

// TestRefusedServices: a Service of the cluster does not take addresses of the internet and of the host's network. Other
// Services, and those without an address, are stored.
func TestRefusedServices(t *testing.T) {
	b := newBed(t)
	b.routes = hostRoutesOfTest
	for name, ip := range map[string]string{"web": "10.96.0.7", "headless": "None", "resolver": "8.8.8.8", "gateway": "192.168.1.1"} {
		b.Put(t, "/api/v1/namespaces/default/services/"+name, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}}})
	}
	b.run(t)
	b.PutPod(t, nodetest.NewPod("user", uid1)) // it starts when the Services are stored
	b.waitRunning(t, "user")
	b.engine.do("", func() {
		if !slices.Equal(b.engine.services, []string{"headless", "web"}) {
			t.Errorf("the host has %v", b.engine.services)
		}
	})
	for _, want := range []string{
		"the cluster's Service default/resolver is refused: its address 8.8.8.8 is in no private range",
		"the cluster's Service default/gateway is refused: its address 192.168.1.1 is in a network to which this host has a route: 192.168.1.0/24",
	} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("not printed: %s", want)
		}
	}
}

// TestRefusedPodCIDRs: the cluster gives neither this node nor another one addresses of the internet, or of the host's
// network.
func TestRefusedPodCIDRs(t *testing.T) {
	node := func(cidr string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", Annotations: map[string]string{annotationKey: strings.Repeat("B", 42) + "A=", annotationEndpoint: "192.0.2.9:51820"}}, Spec: corev1.NodeSpec{PodCIDR: cidr}}
	}
	if _, err := podCIDRs(node("8.8.8.0/24")); err == nil || !strings.Contains(err.Error(), "8.8.8.0/24 is in no private range") {
		t.Errorf("a public network: %v", err)
	}
	peers, problems := (&Network{Key: [32]byte{1}}).peersOf([]*corev1.Node{node("192.168.1.0/25")}, "self", nil, hostRoutesOfTest)
	if err := problems["other"]; len(peers) > 0 || err == nil || !strings.Contains(err.Error(), "is in a network to which this host has a route") {
		t.Errorf("a network of the host: %v, %v", peers, problems)
	}
}
