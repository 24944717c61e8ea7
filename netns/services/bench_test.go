package services

import (
	"fmt"
	"net/netip"
	"testing"
)

// many returns ten Services with two ports and two families, and twenty pods behind each.
func many(ready bool) Catalog {
	var d Catalog
	for i := range 20 {
		d.Pods = append(d.Pods, aPod(fmt.Sprint("p", i), i+2, func(p *Pod) { p.Ready = ready || i > 0 }))
	}
	for i := range 10 {
		d.Services = append(d.Services, aService(func(s *Service) {
			s.Name = fmt.Sprint("s", i)
			s.Addresses = addresses(fmt.Sprintf("10.88.128.%d", i+1), fmt.Sprintf("fd88::%x", 0x8001+i))
			s.Ports = append(s.Ports, Port{Name: "dns", Protocol: "UDP", Port: 53, TargetName: "dns"})
		}))
	}
	return d
}

func BenchmarkApply(b *testing.B) {
	n := newTestbed(b)
	n.apply(many(true))
	b.Run("changed", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if !n.apply(many(i%2 == 1)) {
				b.Fatal("nothing has changed")
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		n.apply(many(true))
		for b.Loop() {
			if n.apply(many(true)) {
				b.Fatal("something has changed")
			}
		}
	})
}

func BenchmarkConnect(b *testing.B) {
	client, server := aPod("client", 200, func(p *Pod) { p.Labels = nil }), aPod("p0", 2)
	n := newTestbed(b, client, server)
	n.serve("p0", "TCP", 8080)
	d := many(true)
	d.Pods = d.Pods[:1]
	n.apply(d)
	for name, to := range map[string]netip.AddrPort{"pod": netip.MustParseAddrPort("10.88.0.2:8080"), "service": netip.MustParseAddrPort("10.88.128.10:80")} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := n.ask("client", "TCP", to.String()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
