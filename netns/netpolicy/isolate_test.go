package netpolicy

import (
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func addresses(list ...string) (all []netip.Addr) {
	for _, a := range list {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

func labels(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func byLabel(key, value string) Selector { return by(key, "In", value) }

func by(key, operator string, values ...string) *pod.Selector {
	return &pod.Selector{Requirements: []pod.Requirement{{Key: key, Operator: operator, Values: values}}}
}

func block(cidr string, except ...string) *Block {
	b := &Block{CIDR: netip.MustParsePrefix(cidr)}
	for _, e := range except {
		b.Except = append(b.Except, netip.MustParsePrefix(e))
	}
	return b
}

func tcp(port uint16) Port { return Port{"TCP", "", port, port} }

// cluster returns pods of three namespaces: db, web and other in default, alice and bob in people,
// which has the label team=x, and mallory in evil.
func cluster() *Catalog {
	add := func(namespace, name, address string, device int, pairs ...string) Pod {
		return Pod{Namespace: namespace, Name: name, Labels: labels(pairs...), Addresses: addresses("10.88.0."+address, "fd88::"+address), Device: device}
	}
	c := &Catalog{Namespaces: map[string]map[string]string{"people": labels("team", "x")}, Pods: []Pod{
		add("default", "db", "2", 2, "role", "db"),
		add("default", "web", "3", 3, "role", "web", "tier", "front"),
		add("default", "other", "4", 4),
		add("people", "alice", "5", 5, "role", "web"),
		add("people", "bob", "6", 6, "role", "db"),
		add("evil", "mallory", "7", 7, "role", "web"),
	}}
	c.Pods[0].Ports = []NamedPort{{"sql", "TCP", 5432}}
	c.Pods[4].Ports = []NamedPort{{"sql", "TCP", 3306}}
	return c
}

// hosts are addresses outside.
var hosts = map[string]string{"lan": "172.17.0.9", "excluded": "172.17.1.9", "world": "192.0.2.1", "world6": "2001:db8::1"}

// find returns the addresses of a pod or a host.
func (c *Catalog) find(name string) []netip.Addr {
	for _, p := range c.Pods {
		if p.Name == name {
			return p.Addresses
		}
	}
	return addresses(hosts[name])
}

// connects reports whether a connection is allowed by both ends.
func (c *Catalog) connects(from, to, protocol string, port uint16) bool {
	all := c.Isolate()
	isolationOf := func(name string) *Isolation {
		for i := range all {
			if all[i].Own[0] == c.find(name)[0] {
				return &all[i]
			}
		}
		return &Isolation{}
	}
	return isolationOf(from).Egress.Allows(c.find(to)[0], protocol, port) && isolationOf(to).Ingress.Allows(c.find(from)[0], protocol, port)
}

// The semantics of Kubernetes' documentation of network policies
// (kubernetes.io/docs/concepts/services-networking/network-policies).
func TestSemantics(t *testing.T) {
	db := byLabel("role", "db")
	ingress := func(pods Selector, rules ...Rule) Policy {
		return Policy{Namespace: "default", Pods: pods, IsolatesIngress: true, Ingress: rules}
	}
	egress := func(pods Selector, rules ...Rule) Policy {
		return Policy{Namespace: "default", Pods: pods, IsolatesEgress: true, Egress: rules}
	}
	from := func(peers ...Peer) Rule { return Rule{Peers: peers} }
	everything := &pod.Selector{}
	type list = []string
	for _, c := range []struct {
		name     string
		policies []Policy
		yes, no  list // "from to PROTOCOL/port"
	}{
		{"without policies everything is allowed", nil, list{"web db", "mallory db", "world db", "db world", "lan db"}, nil},
		{"default deny all ingress traffic", []Policy{ingress(everything)}, list{"db world", "web alice", "alice bob"}, list{"web db", "mallory web", "world db", "lan other"}},
		{"allow all ingress traffic", []Policy{ingress(everything), ingress(everything, Rule{})}, list{"web db", "mallory db", "world db UDP/9"}, nil},
		{"default deny all egress traffic", []Policy{egress(everything)}, list{"alice db", "world db"}, list{"db web", "web world", "other lan"}},
		{"allow all egress traffic", []Policy{egress(everything), egress(everything, Rule{})}, list{"db web", "db world", "db lan UDP/53"}, nil},
		{"default deny all", []Policy{{Namespace: "default", Pods: everything, IsolatesIngress: true, IsolatesEgress: true}}, list{"alice bob"}, list{"web db", "db web", "world db", "db world", "db mallory"}},
		{"podSelector: pods of the policy's namespace", []Policy{ingress(db, from(Peer{Pods: byLabel("role", "web")}))},
			list{"web db", "other web", "alice bob"}, list{"alice db", "mallory db", "other db", "world db"}},
		{"namespaceSelector: all pods of the namespaces", []Policy{ingress(db, from(Peer{Namespaces: byLabel("team", "x")}))},
			list{"alice db", "bob db"}, list{"web db", "mallory db"}},
		{"namespaceSelector and podSelector in one element: both must match", []Policy{ingress(db, from(Peer{Namespaces: byLabel("team", "x"), Pods: byLabel("role", "web")}))},
			list{"alice db"}, list{"bob db", "web db", "mallory db"}},
		{"namespaceSelector and podSelector in two elements: either may match", []Policy{ingress(db, from(Peer{Namespaces: byLabel("team", "x")}, Peer{Pods: byLabel("role", "web")}))},
			list{"alice db", "bob db", "web db"}, list{"other db", "mallory db"}},
		{"an empty podSelector selects all pods of the namespace", []Policy{ingress(db, from(Peer{Pods: &pod.Selector{}}))}, list{"web db", "other db"}, list{"alice db", "world db"}},
		{"an empty namespaceSelector selects all namespaces, but nothing outside", []Policy{ingress(db, from(Peer{Namespaces: &pod.Selector{}}))}, list{"web db", "mallory db"}, list{"world db"}},
		{"a namespace by its name", []Policy{ingress(db, from(Peer{Namespaces: byLabel("kubernetes.io/metadata.name", "evil")}))}, list{"mallory db"}, list{"alice db", "web db"}},
		{"ipBlock with except", []Policy{ingress(db, from(Peer{Block: block("172.17.0.0/16", "172.17.1.0/24")}))}, list{"lan db"}, list{"excluded db", "world db", "web db"}},
		{"ipBlock of everything is of one family", []Policy{ingress(db, from(Peer{Block: block("0.0.0.0/0")}))}, list{"world db", "excluded db"}, list{"world6 db"}},
		{"ports: TCP is not UDP", []Policy{ingress(db, Rule{Ports: []Port{tcp(6379)}})}, list{"web db TCP/6379", "world db TCP/6379"}, list{"web db TCP/6380", "web db UDP/6379"}},
		{"port and peer of one rule: both must match; of two rules: either",
			[]Policy{ingress(db, Rule{Peers: []Peer{{Pods: byLabel("role", "web")}}, Ports: []Port{tcp(1)}}, Rule{Ports: []Port{tcp(2)}})},
			list{"web db TCP/1", "web db TCP/2", "other db TCP/2"}, list{"other db TCP/1", "web db TCP/3"}},
		{"a range of ports", []Policy{egress(db, Rule{Peers: []Peer{{Block: block("192.0.2.0/24")}}, Ports: []Port{{"TCP", "", 32000, 32768}}})},
			list{"db world TCP/32000", "db world TCP/32768", "db world TCP/32500"}, list{"db world TCP/31999", "db world TCP/32769", "db world UDP/32500", "db lan TCP/32000"}},
		{"all ports of a protocol", []Policy{egress(db, Rule{Ports: []Port{{"UDP", "", 0, 65535}}})}, list{"db world UDP/1", "db web UDP/65535"}, list{"db world TCP/1"}},
		{"a named port of the pod itself", []Policy{ingress(db, Rule{Ports: []Port{{Protocol: "TCP", Name: "sql"}}})}, list{"web db TCP/5432"}, list{"web db TCP/3306", "web db UDP/5432"}},
		{"a named port that the pod lacks", []Policy{ingress(byLabel("role", "web"), Rule{Ports: []Port{{Protocol: "TCP", Name: "sql"}}})}, nil, list{"db web TCP/5432"}},
		{"a named port of each destination", []Policy{egress(everything, Rule{Ports: []Port{{Protocol: "TCP", Name: "sql"}}})},
			list{"web db TCP/5432", "web bob TCP/3306"}, list{"web db TCP/3306", "web bob TCP/5432", "web world TCP/5432"}},
		{"a named port beside a number", []Policy{egress(everything, Rule{Peers: []Peer{{Namespaces: byLabel("team", "x")}}, Ports: []Port{{Protocol: "TCP", Name: "sql"}, tcp(80)}})},
			list{"web bob TCP/3306", "web bob TCP/80", "web alice TCP/80"}, list{"web alice TCP/3306", "web db TCP/80", "web db TCP/5432"}},
		{"policies are additive", []Policy{ingress(db, from(Peer{Pods: byLabel("role", "web")})), ingress(db, from(Peer{Namespaces: byLabel("team", "x")})), ingress(everything)},
			list{"web db", "alice db"}, list{"other db", "web other", "mallory db"}},
		{"both ends must allow", []Policy{egress(byLabel("role", "web"), from(Peer{Pods: db})), ingress(db)}, nil, list{"web db", "web other"}},
		{"the directions are independent", []Policy{ingress(db)}, list{"db web", "db world"}, list{"web db"}},
		{"a policy concerns its own namespace", []Policy{{Namespace: "evil", Pods: everything, IsolatesIngress: true}}, list{"web db", "web alice"}, list{"web mallory"}},
		{"rules of a direction that is not isolated have no effect", []Policy{{Namespace: "default", Pods: everything, IsolatesIngress: true, Ingress: []Rule{{}}, Egress: []Rule{{Ports: []Port{tcp(1)}}}}}, list{"db world", "web db"}, nil},
		{"In", []Policy{ingress(db, from(Peer{Pods: by("role", "In", "web", "api")}))}, list{"web db"}, list{"other db"}},
		{"NotIn includes pods without the label", []Policy{ingress(db, from(Peer{Pods: by("role", "NotIn", "web")}))}, list{"other db"}, list{"web db"}},
		{"Exists", []Policy{ingress(db, from(Peer{Pods: by("tier", "Exists")}))}, list{"web db"}, list{"other db"}},
		{"DoesNotExist", []Policy{ingress(db, from(Peer{Pods: by("role", "DoesNotExist")}))}, list{"other db"}, list{"web db"}},
	} {
		all := cluster()
		all.Policies = c.policies
		for want, list := range map[bool]list{true: c.yes, false: c.no} {
			for _, q := range list {
				from, to, protocol, port := parseQuestion(t, q)
				if got := all.connects(from, to, protocol, port); got != want {
					t.Errorf("%s: %s: allowed is %v, want %v", c.name, q, got, want)
				}
			}
		}
	}
}
