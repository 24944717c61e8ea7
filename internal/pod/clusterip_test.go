package pod

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func service(name string, change ...func(*Service)) *Object {
	o := &Object{Kind: KindService, Namespace: "ns", Name: name, Service: &Service{Type: ServiceClusterIP}}
	for _, c := range change {
		c(o.Service)
	}
	return o
}

func addressed(ips ...string) func(*Service) { return func(s *Service) { s.ClusterIPs = ips } }

func TestGiveAddresses(t *testing.T) {
	n := DefaultNetworks
	var all []*Object
	seen := map[string]bool{}
	for i := range 500 {
		o := service(fmt.Sprint("s", i))
		if err := n.AssignClusterIPs(o, all); err != nil {
			t.Fatal(err)
		}
		if len(o.Service.ClusterIPs) != 2 || seen[o.Service.ClusterIPs[0]] || seen[o.Service.ClusterIPs[1]] {
			t.Fatalf("%s gets %v", o.Name, o.Service.ClusterIPs)
		}
		for _, ip := range o.Service.ClusterIPs {
			a := netip.MustParseAddr(ip)
			if seen[ip] = true; !n.V4.Contains(a) && !n.V6.Contains(a) {
				t.Errorf("%s gets %s", o.Name, ip)
			}
		}
		all = append(all, o)
	}
	// A second Service of the same name, as after a recreation, gets the same address.
	again := service("s7")
	if err := n.AssignClusterIPs(again, all); err != nil || !slices.Equal(again.Service.ClusterIPs, all[7].Service.ClusterIPs) {
		t.Errorf("again: %v, %v; was %v", again.Service.ClusterIPs, err, all[7].Service.ClusterIPs)
	}
	for _, o := range []*Object{service("h", addressed("None")), service("e", func(s *Service) { s.Type = ServiceExternalName }), {Kind: KindConfigMap}} {
		if err := n.AssignClusterIPs(o, all); err != nil || o.Service != nil && slices.ContainsFunc(o.Service.ClusterIPs, func(ip string) bool { return ip != "None" }) {
			t.Errorf("%+v, %v", o.Service, err)
		}
	}
}

func TestNamedAddresses(t *testing.T) {
	other := service("other", addressed("10.88.128.9", "fd88::8009"))
	for _, c := range []struct {
		ips  []string
		want string // the addresses, or the error
	}{
		{[]string{"10.88.128.5"}, "10.88.128.5 fd88::8005"},
		{[]string{"fd88::8005"}, "fd88::8005 10.88.128.5"},
		{[]string{"10.88.128.5", "fd88::8005"}, "10.88.128.5 fd88::8005"},
		{[]string{"10.88.128.5", "fd88::8006"}, `"fd88::8006": Services' addresses are 10.88.128.1 to 10.88.255.254 and fd88::8001 to fd88::fffe, one number in both`},
		{[]string{"10.96.0.10"}, `"10.96.0.10": Services' addresses are`},
		{[]string{"10.88.0.10"}, `"10.88.0.10": Services' addresses are`},
		{[]string{"10.88.128.0"}, `"10.88.128.0": Services' addresses are`},
		{[]string{"10.88.255.255"}, `"10.88.255.255": Services' addresses are`},
		{[]string{"10.88.128.9"}, `"10.88.128.9": Service other in namespace ns uses it`},
	} {
		o := service("s", addressed(c.ips...))
		err := DefaultNetworks.AssignClusterIPs(o, []*Object{other, service("s", addressed("10.88.128.5"))})
		got := strings.Join(o.Service.ClusterIPs, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.ips, got)
		}
	}
}

// TestFamilies checks that a Service has addresses of its families, in their order, and keeps the number of its address.
func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		families []string
		ips      []string
		want     string
	}{
		{[]string{IPv4}, nil, "10.88."},
		{[]string{IPv6}, nil, "fd88::"},
		{[]string{IPv4}, []string{"10.88.128.5"}, "10.88.128.5"},
		{[]string{IPv4}, []string{"10.88.128.5", "fd88::8005"}, "10.88.128.5"},
		{[]string{IPv6, IPv4}, []string{"fd88::8005"}, "fd88::8005 10.88.128.5"},
		{[]string{IPv4, IPv6}, []string{"10.88.128.5"}, "10.88.128.5 fd88::8005"},
	} {
		o := service("s", addressed(c.ips...), func(s *Service) { s.Families = c.families })
		if err := DefaultNetworks.AssignClusterIPs(o, nil); err != nil {
			t.Fatal(err)
		}
		got := o.Service.ClusterIPs
		if len(got) != len(c.families) || !strings.HasPrefix(strings.Join(got, " "), c.want) {
			t.Errorf("families %v, addresses %v: %v", c.families, c.ips, got)
		}
		moved := Networks{netip.MustParsePrefix("172.22.0.0/16"), netip.MustParsePrefix("fd89::/64")}
		if moved.Renumber(o.Service); len(o.Service.ClusterIPs) != len(c.families) || !moved.V4.Contains(netip.MustParseAddr(o.Service.ClusterIPs[0])) && !moved.V6.Contains(netip.MustParseAddr(o.Service.ClusterIPs[0])) {
			t.Errorf("families %v in other networks: %v", c.families, o.Service.ClusterIPs)
		}
	}
}

func TestRenumber(t *testing.T) {
	moved := Networks{netip.MustParsePrefix("172.22.0.0/16"), netip.MustParsePrefix("fd89::/64")}
	for _, c := range []struct {
		was, is string
		changed bool
	}{
		{"10.88.128.5 fd88::8005", "172.22.128.5 fd89::8005", true},
		{"172.22.128.5 fd89::8005", "172.22.128.5 fd89::8005", false},
		{"fd88::8005 10.88.128.5", "fd89::8005 172.22.128.5", true},
		{"None", "None", false},
		{"", "", false},
	} {
		s := service("s", addressed(strings.Fields(c.was)...)).Service
		if changed := moved.Renumber(s); changed != c.changed || strings.Join(s.ClusterIPs, " ") != c.is {
			t.Errorf("%s: %v, %v", c.was, s.ClusterIPs, changed)
		}
	}
}

func TestNoAddressIsLeft(t *testing.T) {
	var all []*Object
	for i := range ServiceAddresses {
		all = append(all, service(fmt.Sprint("s", i), addressed(addressStrings(DefaultNetworks.Service(i))...)))
	}
	if err := DefaultNetworks.AssignClusterIPs(service("new"), all); err == nil {
		t.Error("one more than there are")
	}
}
