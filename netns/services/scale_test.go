package services

import (
	"fmt"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// A host may have more Services than fit in a socket's default buffers.
func TestManyServices(t *testing.T) {
	testenv.NoLeaks(t)
	client := aPod("client", 200, func(p *Pod) { p.Labels = nil })
	a, b := aPod("a", 2), aPod("b", 3, func(p *Pod) { p.Labels = map[string]string{} })
	a.Labels["set"], b.Labels["set"] = "both", "both"
	n := newTestbed(t, client, a, b)
	n.serve("a", "TCP", 8080)
	n.serve("b", "TCP", 8080)
	d := Catalog{Pods: []Pod{client, a, b}}
	for i := range 500 {
		d.Services = append(d.Services, aService(func(s *Service) {
			s.Name = fmt.Sprint("s", i)
			s.Addresses = addresses(fmt.Sprintf("10.88.%d.%d", 128+i/250, i%250+1), fmt.Sprintf("fd88::%x", 0x8001+i))
			s.Ports = append(s.Ports, Port{Name: "dns", Protocol: "UDP", Port: 53, TargetName: "dns"})
			if i%12 == 0 {
				s.Selector = map[string]string{"set": "both"}
			}
			if i%24 == 0 {
				s.Affinity = time.Hour
			}
		}))
	}
	n.apply(d)
	for _, address := range []string{"10.88.128.1:80", "10.88.129.250:80", "[fd88::81f4]:80"} {
		if answer, err := n.ask("client", "TCP", address); err != nil {
			t.Errorf("%s: %q, %v", address, answer, err)
		}
	}
	n.apply(Catalog{Pods: d.Pods, Services: d.Services[1:2]})
	for address, want := range map[string]bool{"10.88.128.1:80": false, "10.88.128.2:80": true, "[fd88::8001]:80": false, "[fd88::8002]:80": true} {
		if answer, err := n.ask("client", "TCP", address); (err == nil) != want {
			t.Errorf("one is left: %s: %q, %v", address, answer, err)
		}
	}
}
