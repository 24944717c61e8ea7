package resolvconf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The values are from the kubelet's own tests (pkg/kubelet/network/dns/dns_test.go).

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Config
	}{
		{"", Config{}},
		{" ", Config{}},
		{"\n", Config{}},
		{"\t\n\t", Config{}},
		{"#comment\n", Config{}},
		{" #comment\n", Config{}},
		{"#comment\n#comment", Config{}},
		{"; glibc's\n;nameserver 1.2.3.4", Config{}},
		{"#comment\nnameserver", Config{}},
		{"#comment\nnameserver 1.2.3.4", Config{Nameservers: []string{"1.2.3.4"}}},
		{" nameserver 1.2.3.4", Config{Nameservers: []string{"1.2.3.4"}}},
		{"\tnameserver 1.2.3.4", Config{Nameservers: []string{"1.2.3.4"}}},
		{"nameserver\t1.2.3.4", Config{Nameservers: []string{"1.2.3.4"}}},
		{"nameserver \t 1.2.3.4", Config{Nameservers: []string{"1.2.3.4"}}},
		{"nameserver 1.2.3.4\nnameserver 5.6.7.8", Config{Nameservers: []string{"1.2.3.4", "5.6.7.8"}}},
		{"nameserver 1.2.3.4 #comment", Config{Nameservers: []string{"1.2.3.4"}}},
		{"search ", Config{}},
		{"search .", Config{Searches: []string{"."}}},
		{"search foo", Config{Searches: []string{"foo"}}},
		{"search foo bar", Config{Searches: []string{"foo", "bar"}}},
		{"search foo. bar", Config{Searches: []string{"foo", "bar"}}},
		{"search foo bar bat\n", Config{Searches: []string{"foo", "bar", "bat"}}},
		{"search foo\nsearch bar", Config{Searches: []string{"bar"}}},
		{"domain foo", Config{Searches: []string{"foo"}}},
		{"nameserver 1.2.3.4\nsearch foo bar", Config{Nameservers: []string{"1.2.3.4"}, Searches: []string{"foo", "bar"}}},
		{"nameserver 1.2.3.4\nsearch foo\nnameserver 5.6.7.8\nsearch bar", Config{Nameservers: []string{"1.2.3.4", "5.6.7.8"}, Searches: []string{"bar"}}},
		{"#comment\nnameserver 1.2.3.4\n#comment\nsearch foo\ncomment", Config{Nameservers: []string{"1.2.3.4"}, Searches: []string{"foo"}}},
		{"options ", Config{}},
		{"options ndots:5 attempts:2", Config{Options: []string{"ndots:5", "attempts:2"}}},
		{"options ndots:1\noptions ndots:5 attempts:3", Config{Options: []string{"ndots:5", "attempts:3"}}},
		{"options ndots:1\noptions ndots:5 attempts:3\noptions", Config{Options: []string{"ndots:5", "attempts:3"}}},
		{"options ndots:1 ndots:3 attempts:3", Config{Options: []string{"ndots:3", "attempts:3"}}},
	} {
		if diff := cmp.Diff(c.want, Parse(c.text)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
	}
}

var (
	host    = Config{Nameservers: []string{"192.0.2.53", "2001:db8::53"}, Searches: []string{"example.com", "svc.cluster.local"}, Options: []string{"timeout:2", "rotate"}}
	stub    = Config{Nameservers: []string{"127.0.0.53", "192.0.2.53", "fe80::1%eth0"}, Options: []string{"edns0"}}
	podruns = []string{"10.88.0.1"}
	cluster = []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local"}
)

func TestPolicies(t *testing.T) {
	config := Config{Nameservers: []string{"203.0.113.1", "10.88.0.1"}, Searches: []string{"own.example", "cluster.local"}, Options: []string{"ndots:2", "debug"}}
	for _, c := range []struct {
		name string
		pod  Pod
		host Config
		want Config
		says string
	}{
		{"ClusterFirst", Pod{Resolver: podruns}, host,
			Config{podruns, append(slices.Clone(cluster), "example.com"), []string{"ndots:5"}}, ""},
		{"ClusterFirst with its own", Pod{Policy: ClusterFirst, Resolver: podruns, DNSConfig: config}, host,
			Config{[]string{"10.88.0.1", "203.0.113.1"}, append(slices.Clone(cluster), "example.com", "own.example"), []string{"ndots:2", "debug"}}, ""},
		{"ClusterFirst on the host's network", Pod{Policy: ClusterFirst, Resolver: podruns, HostNetwork: true}, stub, stub, ""},
		{"ClusterFirstWithHostNet on the host's network", Pod{Policy: ClusterFirstWithHostNet, HostNetwork: true}, stub, stub,
			`MissingClusterDNS: podrun has no resolver in this pod's network and cannot create Pod using "ClusterFirstWithHostNet" policy. Falling back to "Default" policy.`},
		{"ClusterFirstWithHostNet in its own network", Pod{Policy: ClusterFirstWithHostNet, Resolver: podruns}, Config{}, Config{podruns, cluster, []string{"ndots:5"}}, ""},
		{"ClusterFirst without a network", Pod{}, host, host,
			`MissingClusterDNS: podrun has no resolver in this pod's network and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`},
		{"Default", Pod{Policy: Default, Resolver: podruns}, host, host, ""},
		{"Default with its own", Pod{Policy: Default, Resolver: podruns, DNSConfig: Config{Options: []string{"timeout:5"}}}, host,
			Config{host.Nameservers, host.Searches, []string{"timeout:5", "rotate"}}, ""},
		{"Default where the host asks itself", Pod{Policy: Default, Resolver: podruns}, stub, Config{[]string{"10.88.0.1", "192.0.2.53"}, nil, stub.Options}, ""},
		{"Default where the host has none", Pod{Policy: Default, Resolver: podruns}, Config{}, Config{Nameservers: podruns}, ""},
		{"a cluster's servers and domain", Pod{Resolver: podruns, ClusterDNS: []string{"10.96.0.10", "fd00::a"}, Domain: "k8s.example", DNSConfig: Config{Searches: []string{"own.example"}}}, host,
			Config{[]string{"10.96.0.10", "fd00::a"}, []string{"ns.svc.k8s.example", "svc.k8s.example", "k8s.example", "example.com", "svc.cluster.local", "own.example"}, []string{"ndots:5"}}, ""},
		{"a cluster's servers, for a pod of the host's network", Pod{ClusterDNS: []string{"192.0.2.10"}, HostNetwork: true}, stub, stub, ""},
		{"a cluster's servers, for a pod of the host's network that requests them", Pod{Policy: ClusterFirstWithHostNet, ClusterDNS: []string{"192.0.2.10"}, HostNetwork: true}, Config{},
			Config{[]string{"192.0.2.10"}, cluster, []string{"ndots:5"}}, ""},
		{"Default in a cluster with servers", Pod{Policy: Default, ClusterDNS: []string{"192.0.2.10"}, Resolver: podruns}, host, host, ""},
		{"None", Pod{Policy: None, Resolver: podruns, DNSConfig: config}, host, config, ""},
	} {
		c.pod.Namespace = "ns"
		if c.pod.Domain == "" {
			c.pod.Domain = "cluster.local"
		}
		got, events := Build(c.pod, c.host)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		var output []string
		for _, e := range events {
			output = append(output, e.Reason+": "+e.Message)
		}
		if strings.Join(output, "|") != c.says {
			t.Errorf("%s: events %q, want %q", c.name, output, c.says)
		}
	}
}

func TestLimits(t *testing.T) {
	many := func(n, chars int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("%0*d", chars, i))
		}
		return list
	}
	for _, c := range []struct {
		name     string
		own      Config
		ns, srch int // how many stay
		says     []string
	}{
		{"within", Config{Nameservers: many(3, 2), Searches: many(32, 2)}, 3, 32, nil},
		{"a nameserver too many", Config{Nameservers: many(4, 2)}, 3, 0, []string{"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 00 01 02"}},
		{"a search path too many", Config{Searches: many(33, 2)}, 0, 32, []string{"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(many(32, 2), " ")}},
		{"2048 characters", Config{Searches: append(many(15, 127), many(1, 128)...)}, 0, 16, nil}, // 15·127 + 128 + 15
		{"2049 characters", Config{Searches: append(many(15, 127), many(1, 129)...)}, 0, 15, []string{"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(many(15, 127), " ")}},
		{"one that libraries abort at", Config{Searches: []string{"a", strings.Repeat("b", 254), "c"}}, 0, 2, []string{"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: a c"}},
	} {
		got, events := Build(Pod{Policy: None, DNSConfig: c.own}, host)
		if len(got.Nameservers) != c.ns || len(got.Searches) != c.srch {
			t.Errorf("%s: %d nameservers, %d search paths", c.name, len(got.Nameservers), len(got.Searches))
		}
		var output []string
		for _, e := range events {
			if e.Reason != "DNSConfigForming" {
				t.Errorf("%s: reason %s", c.name, e.Reason)
			}
			output = append(output, e.Message)
		}
		if diff := cmp.Diff(c.says, output); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestString(t *testing.T) {
	got := Config{[]string{"10.88.0.1", "fd88::1"}, cluster, []string{"ndots:5", "rotate"}}.String()
	want := "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.88.0.1\nnameserver fd88::1\noptions ndots:5 rotate\n"
	if got != want {
		t.Errorf("got %q", got)
	}
	if got := (Config{}).String(); got != "" {
		t.Errorf("nothing at all: %q", got)
	}
}
