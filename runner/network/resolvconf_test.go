package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

const managed = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
	"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"

func TestHostsFile(t *testing.T) {
	both := []netip.Addr{netip.MustParseAddr("10.88.0.2"), netip.MustParseAddr("fd88::2")}
	aliases := []pod.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"a", "b.example"}}, {IP: "::1", Hostnames: []string{"c"}}}
	for _, c := range []struct {
		name      string
		plan      pod.Plan
		addresses []netip.Addr
		want      string
	}{
		{"without a network", pod.Plan{Hostname: "h"}, nil, "127.0.1.1\th\n"},
		{"both families", pod.Plan{Hostname: "h"}, both, "10.88.0.2\th\nfd88::2\th\n"},
		{"a subdomain", pod.Plan{Hostname: "h", Subdomain: "sub", Namespace: "ns"}, both[:1], "10.88.0.2\th.sub.ns.svc.cluster.local\th\n"},
		{"aliases", pod.Plan{Hostname: "h", HostAliases: aliases}, both[:1],
			"10.88.0.2\th\n\n# Entries added by HostAliases.\n192.0.2.1\ta\tb.example\n::1\tc\n"},
		{"names of the host", pod.Plan{Hostname: "h", HostNames: []string{"host.docker.internal", "gw"}}, both[:1],
			"10.88.0.2\th\n\n# Names of the host.\n169.254.1.2\thost.docker.internal\tgw\n"},
	} {
		if diff := cmp.Diff(managed+c.want, HostsFile(&c.plan, c.addresses)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestEndpoint(t *testing.T) {
	plan := &pod.Plan{UID: "u", Hostname: "h", Subdomain: "s", Labels: map[string]string{"a": "b"},
		Ports: []pod.Port{{Container: "c", Name: "http", Protocol: "TCP", Number: 80, HostPort: 8080}, {Container: "c", Protocol: "UDP", Number: 53}}}
	want := &pod.Endpoint{UID: "u", Hostname: "h", Subdomain: "s", Labels: plan.Labels, Addresses: []string{"10.88.0.2"}, Ready: true,
		Ports: []pod.Port{{Name: "http", Protocol: "TCP", Number: 80}}}
	if diff := cmp.Diff(want, newEndpoint(plan, []netip.Addr{netip.MustParseAddr("10.88.0.2")}, true)); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		st   pod.Status
		want bool
	}{
		"ready":        {pod.Status{Conditions: []pod.Condition{{Type: "Initialized", Status: "False"}, {Type: "Ready", Status: "True"}}}, true},
		"not ready":    {pod.Status{Conditions: []pod.Condition{{Type: "ContainersReady", Status: "True"}, {Type: "Ready", Status: "False"}}}, false},
		"about to end": {pod.Status{Deleting: true, Conditions: []pod.Condition{{Type: "Ready", Status: "True"}}}, false},
		"no condition": {pod.Status{}, false},
	} {
		if got := isReady(&c.st); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// DNS names and Services follow from the objects that commands store and the endpoints that supervisors
// publish.
func TestServiceOfObject(t *testing.T) {
	o := &pod.Object{Namespace: "ns", Name: "web", Service: &pod.Service{Type: pod.ServiceClusterIP, ClusterIPs: []string{"10.88.128.1", "fd88::8001"},
		Selector: map[string]string{"a": "b"}, AffinitySeconds: 9, PublishNotReady: true,
		Ports: []pod.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, TargetName: "web"}, {Protocol: "UDP", Port: 53, TargetPort: 5353}}}}
	s := toService(o)
	if len(s.Addresses) != 2 || s.Headless() || s.Affinity == 0 || !s.PublishNotReady || s.Selector["a"] != "b" ||
		s.Ports[0].TargetName != "web" || s.Ports[1].Target != 5353 || s.Ports[1].Port != 53 {
		t.Errorf("%+v", s)
	}
	o.Service.ClusterIPs = []string{"None"}
	if s := toService(o); !s.Headless() {
		t.Errorf("None: %+v", s)
	}
	o.Service = &pod.Service{Type: pod.ServiceExternalName, ExternalName: "x.example"}
	if s := toService(o); s.Headless() || s.ExternalName != "x.example" {
		t.Errorf("ExternalName: %+v", s)
	}
}
