package dns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/podrun/podrun/netns/services"
)

func addresses(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

var app = map[string]string{"app": "db"}

// known returns the directory of these tests, as a pod of namespace ns sees it.
func known() *View {
	http := []services.Port{{Name: "http", Protocol: "TCP", Port: 80, Target: 8080}, {Name: "dns", Protocol: "UDP", Port: 53, Target: 5353}}
	return &View{
		Namespace: "ns",
		Host:      addresses("169.254.1.2"),
		Ranges:    []netip.Prefix{netip.MustParsePrefix("10.88.0.0/16"), netip.MustParsePrefix("fd88::/64")},
		Catalog: services.Catalog{
			Services: []services.Service{
				{Namespace: "ns", Name: "web", Addresses: addresses("10.88.128.1", "fd88::8001"), Ports: http},
				{Namespace: "other", Name: "web", Addresses: addresses("10.88.128.2"), Ports: http[:1]},
				{Namespace: "ns", Name: "db", Selector: app, Ports: []services.Port{{Name: "sql", Protocol: "TCP", Port: 5432, TargetName: "sql"}}},
				{Namespace: "ns", Name: "my-db", Aliases: []string{"my_db", "shop.db", "web"}, Selector: app},
				{Namespace: "ns", Name: "four", Selector: app, Family: 4, Ports: http[:1]},
				{Namespace: "ns", Name: "six", Selector: app, Family: 6, Ports: http[:1]},
				{Namespace: "ns", Name: "empty", Selector: map[string]string{"app": "none"}, Ports: http[:1]},
				{Namespace: "ns", Name: "out", ExternalName: "www.Example.org"},
				{Namespace: "ns", Name: "near", ExternalName: "web.other.svc.cluster.local"},
				{Namespace: "ns", Name: "gone", ExternalName: "none.other.svc.cluster.local"},
				{Namespace: "ns", Name: "round", ExternalName: "about.ns.svc.cluster.local"},
				{Namespace: "ns", Name: "about", ExternalName: "round.ns.svc.cluster.local"},
			},
			Pods: []services.Pod{
				{Namespace: "ns", Name: "db-0", Hostname: "db-0", Subdomain: "db", Labels: app, Ready: true, Addresses: addresses("10.88.0.2", "fd88::2"),
					Ports: []services.NamedPort{{Name: "sql", Protocol: "TCP", Port: 15432}}},
				{Namespace: "ns", Name: "db-1", Hostname: "db-1", Subdomain: "db", Labels: app, Addresses: addresses("10.88.0.3", "fd88::3"),
					Ports: []services.NamedPort{{Name: "sql", Protocol: "TCP", Port: 15432}}},
				{Namespace: "ns", Name: "db-x", Hostname: "db-x", Labels: app, Ready: true, Addresses: addresses("10.88.0.4"),
					Ports: []services.NamedPort{{Name: "sql", Protocol: "TCP", Port: 25432}}},
				{Namespace: "ns", Name: "lone", Hostname: "busy", Subdomain: "sub", Addresses: addresses("10.88.0.5")},
				{Namespace: "ns", Name: "dotted.name", Hostname: "dotted.name", Addresses: addresses("10.88.0.6")},
				{Namespace: "ns", Name: "web", Hostname: "web", Addresses: addresses("10.88.0.7")},
				{Namespace: "far", Name: "alone", Hostname: "alone", Addresses: addresses("10.88.0.8")},
			},
		},
	}
}

var kinds = map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "SRV": dnsmessage.TypeSRV, "PTR": dnsmessage.TypePTR,
	"CNAME": dnsmessage.TypeCNAME, "MX": dnsmessage.TypeMX, "TXT": dnsmessage.TypeTXT, "SOA": dnsmessage.TypeSOA, "ANY": dnsmessage.TypeALL}

// question parses "NAME TYPE".
func question(text string) *query {
	name, kind, _ := strings.Cut(text, " ")
	return &query{name: strings.ToLower(name), limit: maxSize,
		question: dnsmessage.Question{Name: dnsmessage.MustNewName(name + "."), Type: kinds[kind], Class: dnsmessage.ClassINET}}
}

// spelled formats an answer in short form.
func spelled(a answer, alias string, ours bool) string {
	if !ours && alias == "" {
		return "not ours"
	}
	var parts []string
	for _, r := range append(a.records, a.additional...) {
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			parts = append(parts, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			parts = append(parts, netip.AddrFrom16(b.AAAA).String())
		case *dnsmessage.CNAMEResource:
			parts = append(parts, "="+b.CNAME.String())
		case *dnsmessage.PTRResource:
			parts = append(parts, b.PTR.String())
		case *dnsmessage.SRVResource:
			parts = append(parts, b.Target.String()+":"+strings.TrimPrefix(netip.AddrPortFrom(netip.IPv4Unspecified(), b.Port).String(), "0.0.0.0:"))
		case *dnsmessage.SOAResource:
			parts = append(parts, "SOA")
		}
	}
	if alias != "" {
		parts = append(parts, "ask "+alias)
	}
	switch {
	case a.code == dnsmessage.RCodeNameError:
		parts = append(parts, "NXDOMAIN")
	case a.code != 0:
		parts = append(parts, strings.TrimPrefix(a.code.String(), "RCode"))
	case a.noData:
		parts = append(parts, "NODATA")
	}
	return strings.Join(parts, " ")
}

func TestLocal(t *testing.T) {
	for q, want := range map[string]string{
		// All names of a Service.
		"web A":                              "10.88.128.1",
		"web AAAA":                           "fd88::8001",
		"WEB.Ns A":                           "10.88.128.1",
		"web.ns.svc A":                       "10.88.128.1",
		"web.ns.svc.cluster.local A":         "10.88.128.1",
		"web.other A":                        "10.88.128.2",
		"web.other.svc.cluster.local AAAA":   "NODATA",
		"web.ns.svc.cluster.local MX":        "NODATA",
		"web.ns.svc.cluster.local ANY":       "10.88.128.1 fd88::8001 web.ns.svc.cluster.local.:80 web.ns.svc.cluster.local.:53",
		"_http._tcp.web.ns.svc SRV":          "web.ns.svc.cluster.local.:80 10.88.128.1 fd88::8001",
		"_dns._udp.web.ns.svc SRV":           "web.ns.svc.cluster.local.:53 10.88.128.1 fd88::8001",
		"_dns._tcp.web.ns.svc SRV":           "not ours",
		"_x._tcp.web.ns.svc.cluster.local A": "NXDOMAIN",
		"_http._tcp.web.ns.svc A":            "NODATA",
		"_HTTP._TCP.WEB SRV":                 "web.ns.svc.cluster.local.:80 10.88.128.1 fd88::8001",

		// A headless Service stands for its ready pods.
		"db A":                                  "10.88.0.2 10.88.0.4",
		"db.ns.svc.cluster.local AAAA":          "fd88::2",
		"db-0.db A":                             "10.88.0.2",
		"db-0.db.ns.svc.cluster.local AAAA":     "fd88::2",
		"db-1.db.ns.svc.cluster.local A":        "NXDOMAIN",
		"db-x.db.ns.svc.cluster.local A":        "NXDOMAIN",
		"10-88-0-4.db.ns.svc.cluster.local A":   "10.88.0.4",
		"_sql._tcp.db.ns.svc.cluster.local SRV": "db-0.db.ns.svc.cluster.local.:15432 10-88-0-4.db.ns.svc.cluster.local.:25432 10.88.0.2 fd88::2 10.88.0.4",
		"empty.ns.svc.cluster.local A":          "NODATA",

		// One of a single family has no addresses of the other.
		"my_db A":                                  "10.88.0.2 10.88.0.4",
		"My_DB.ns.svc.cluster.local A":             "10.88.0.2 10.88.0.4",
		"my_db.ns A":                               "10.88.0.2 10.88.0.4",
		"shop.db A":                                "10.88.0.2 10.88.0.4",
		"shop.db.ns.svc.cluster.local AAAA":        "fd88::2",
		"my_db.other.svc.cluster.local A":          "NXDOMAIN",
		"four A":                                   "10.88.0.2 10.88.0.4",
		"four.ns.svc.cluster.local AAAA":           "NODATA",
		"10-88-0-2.four.ns.svc.cluster.local A":    "10.88.0.2",
		"fd88--2.four.ns.svc.cluster.local AAAA":   "NXDOMAIN",
		"_http._tcp.four.ns.svc.cluster.local SRV": "10-88-0-2.four.ns.svc.cluster.local.:8080 10-88-0-4.four.ns.svc.cluster.local.:8080 10.88.0.2 10.88.0.4",
		"six.ns.svc.cluster.local A":               "NODATA",
		"six AAAA":                                 "fd88::2",

		// A Service that is an alias for another name.
		"out A":                          "=www.example.org. ask www.example.org",
		"out.ns.svc.cluster.local CNAME": "=www.example.org.",
		"near A":                         "=web.other.svc.cluster.local. 10.88.128.2",
		"near AAAA":                      "=web.other.svc.cluster.local. NODATA",
		"gone A":                         "=none.other.svc.cluster.local. NXDOMAIN",
		"round A":                        "ServerFailure",

		// Pods.
		"lone A":                             "10.88.0.5",
		"db-1 A":                             "10.88.0.3",
		"lone.ns A":                          "10.88.0.5",
		"lone.ns.svc.cluster.local AAAA":     "NODATA",
		"busy.sub.ns.svc.cluster.local A":    "10.88.0.5",
		"busy.sub A":                         "10.88.0.5",
		"busy A":                             "not ours",
		"dotted.name A":                      "10.88.0.6",
		"dotted.name.ns.svc.cluster.local A": "10.88.0.6",
		"alone A":                            "not ours",
		"alone.far A":                        "10.88.0.8",
		"10-88-0-5.ns.pod.cluster.local A":   "10.88.0.5",
		"10-88-0-5.far.pod.cluster.local A":  "NXDOMAIN",
		"10-88-0-99.ns.pod.cluster.local A":  "NXDOMAIN",
		"fd88--2.ns.pod.cluster.local AAAA":  "fd88::2",

		// Addresses.
		"1.128.88.10.in-addr.arpa PTR":                                 "web.ns.svc.cluster.local.",
		"2.0.88.10.in-addr.arpa PTR":                                   "db-0.db.ns.svc.cluster.local.",
		"4.0.88.10.in-addr.arpa PTR":                                   "db-x.ns.svc.cluster.local.",
		"5.0.88.10.in-addr.arpa PTR":                                   "busy.sub.ns.svc.cluster.local.",
		"2.1.254.169.in-addr.arpa PTR":                                 "host.podrun.internal.",
		"99.99.88.10.in-addr.arpa PTR":                                 "NXDOMAIN",
		"2.0.88.10.in-addr.arpa A":                                     "NODATA",
		"1.1.1.1.in-addr.arpa PTR":                                     "not ours",
		"1.1.in-addr.arpa PTR":                                         "not ours",
		"01.0.88.10.in-addr.arpa PTR":                                  "not ours",
		"1.0.0.8." + strings.Repeat("0.", 24) + "8.8.d.f.ip6.arpa PTR": "web.ns.svc.cluster.local.",
		"9.9.9.9." + strings.Repeat("0.", 24) + "8.8.d.f.ip6.arpa PTR": "NXDOMAIN",
		strings.Repeat("0.", 32) + "ip6.arpa PTR":                      "not ours",
		strings.Repeat("00.", 32) + "ip6.arpa PTR":                     "not ours",

		// The zones, and names missing in them.
		"cluster.local A":                        "NODATA",
		"cluster.local SOA":                      "SOA",
		"svc.cluster.local A":                    "NODATA",
		"pod.cluster.local A":                    "NODATA",
		"ns.svc.cluster.local A":                 "NODATA",
		"far.svc.cluster.local A":                "NODATA",
		"none.svc.cluster.local A":               "NXDOMAIN",
		"x.cluster.local A":                      "NXDOMAIN",
		"web.ns.cluster.local A":                 "NXDOMAIN",
		"none.ns.svc.cluster.local A":            "NXDOMAIN",
		"a.b.c.ns.svc.cluster.local A":           "NXDOMAIN",
		"www.example.org.ns.svc.cluster.local A": "NXDOMAIN",
		"host.podrun.internal A":                 "169.254.1.2",
		"host.podrun.internal AAAA":              "NODATA",
		"podrun.internal SOA":                    "SOA",
		"x.podrun.internal A":                    "NXDOMAIN",

		// Everything else.
		"www.example.org A":  "not ours",
		"example A":          "not ours",
		"local A":            "not ours",
		"svc A":              "not ours",
		"ns.svc A":           "not ours",
		"none.ns.svc A":      "not ours",
		"xcluster.local A":   "not ours",
		"web.ns.svc.local A": "not ours",
	} {
		if diff := cmp.Diff(want, spelled(known().resolve(question(q), 0))); diff != "" {
			t.Errorf("%s: %s", q, diff)
		}
	}
}

func TestHostLoopbackIsNamedIfAskedFor(t *testing.T) {
	v := known()
	v.Host = nil
	if got := spelled(v.resolve(question("host.podrun.internal A"), 0)); got != "NXDOMAIN" {
		t.Errorf("host.podrun.internal: %s", got)
	}
	if got := spelled(v.resolve(question("2.1.254.169.in-addr.arpa PTR"), 0)); got != "not ours" {
		t.Errorf("its address: %s", got)
	}
}

// Pods of other nodes have names, too.
func TestOtherNodes(t *testing.T) {
	v := known()
	v.OtherNodes = true
	for q, want := range map[string]string{
		"10-88-0-5.ns.pod.cluster.local A":    "10.88.0.5",
		"10-244-1-9.ns.pod.cluster.local A":   "10.244.1.9",
		"10-244-1-9.ns.pod.cluster.local SRV": "NODATA",
		"fd00--9.ns.pod.cluster.local AAAA":   "fd00::9",
		"10-244-1.ns.pod.cluster.local A":     "NXDOMAIN",
		"10-244-1-9.a.ns.pod.cluster.local A": "NXDOMAIN",
		"10-244-1-9.ns.svc.cluster.local A":   "NXDOMAIN",
	} {
		if got := spelled(v.resolve(question(q), 0)); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
}

// A Kubernetes cluster may have another domain.
func TestDomain(t *testing.T) {
	v := known()
	v.Domain = "k8s.example"
	for q, want := range map[string]string{
		"web.ns.svc.k8s.example A":     "10.88.128.1",
		"db-0.db.ns.svc.k8s.example A": "10.88.0.2",
		"none.ns.svc.k8s.example A":    "NXDOMAIN",
		"k8s.example SOA":              "SOA",
		"_http._tcp.web SRV":           "web.ns.svc.k8s.example.:80 10.88.128.1 fd88::8001",
		"1.128.88.10.in-addr.arpa PTR": "web.ns.svc.k8s.example.",
		"web.ns.svc.cluster.local A":   "not ours",
	} {
		if got := spelled(v.resolve(question(q), 0)); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
}

func TestAddressesRotate(t *testing.T) {
	for turn, want := range []string{"10.88.0.2 10.88.0.4", "10.88.0.4 10.88.0.2", "10.88.0.2 10.88.0.4"} {
		if got := spelled(known().resolve(question("db A"), turn)); got != want {
			t.Errorf("turn %d: %s", turn, got)
		}
	}
}

func TestPublishNotReady(t *testing.T) {
	v := known()
	v.Services[2].PublishNotReady = true
	if got := spelled(v.resolve(question("db A"), 0)); got != "10.88.0.2 10.88.0.3 10.88.0.4" {
		t.Errorf("db: %s", got)
	}
	if got := spelled(v.resolve(question("db-1.db.ns.svc.cluster.local A"), 0)); got != "10.88.0.3" {
		t.Errorf("db-1.db: %s", got)
	}
}
