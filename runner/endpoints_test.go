package runner

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// A Service without a selector leads to other hosts, by its address of each family, with every way out of the
// pod, after the death of its supervisor and after hibernation. A headless one has their addresses.
func TestServiceOfOtherHosts(t *testing.T) {
	testenv.NoLeaks(t)
	forwarding(t)
	answering(t, remoteHost(t), 7000)
	for _, mode := range []pod.NetworkMode{pod.NetworkTProxy, pod.NetworkMasquerade, pod.NetworkNetstack} {
		t.Run(string(mode), func(t *testing.T) {
			t.Setenv("PODRUN_HIBERNATE_AFTER", "50ms")
			plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
			plan.Network = mode
			w := newWhole(t, plan)
			addresses := w.putOutside()
			if err := w.start(plan); err != nil {
				t.Fatal(err)
			}
			w.until(running)
			for round, then := range []func(supervisor, podInit int){
				func(_, podInit int) { w.asleep(podInit) },
				func(supervisor, podInit int) { w.killSupervisor(supervisor, podInit) },
				nil,
			} {
				for _, a := range addresses {
					for name, c := range map[string]struct{ script, want string }{
						"TCP":       {"echo hi | nc -w 9 %s 80; echo hi | nc -w 9 %[1]s 80", `^(tcp (10\.77\.0\.1|\[fd77::1\]):[0-9]+ hi` + "\n){2}$"},
						"no port":   {"nc -w 9 %s 81 2>&1; echo $?", "refused\n1\n$"},
						"no server": {"nc -w 9 %s 82 2>&1; echo $?", "refused\n1\n$"},
					} {
						if _, out := w.ask("a", "/bin/sh", "-c", fmt.Sprintf(c.script, a)); !regexp.MustCompile(c.want).MatchString(out) {
							t.Errorf("round %d, %s %s: %q", round, name, a, out)
						}
					}
				}
				if then != nil {
					then(w.processes())
					continue
				}
				// At the end: an idle session keeps the supervisor for two minutes.
				_, podInit := w.processes()
				for _, a := range addresses {
					out, err := askFrom(fmt.Sprintf("/proc/%d/fd/5", podInit), "udp", net.JoinHostPort(a, "53"))
					if err != nil || !regexp.MustCompile(`^udp (10\.77\.0\.1|fd77::1|\[fd77::1\]):[0-9]+ `).Match(out) {
						t.Errorf("UDP %s: %q %v", a, out, err)
					}
				}
			}
			if _, out := w.ask("a", "/bin/nslookup", "heads.default.svc.cluster.local"); !regexp.MustCompile(`(?s)Address: 10\.77\.0\.2\b.*`).MatchString(out) {
				t.Errorf("headless: %s", out)
			}
			if _, out := w.ask("a", "/bin/nslookup", "one.heads.default.svc.cluster.local"); !regexp.MustCompile(`(?s)Address: 10\.77\.0\.2\b.*`).MatchString(out) {
				t.Errorf("headless, by hostname: %s", out)
			}
		})
	}
}

// putOutside stores Services without a selector, and endpoints on remoteHost. It returns the addresses of one
// that has some.
func (w wholePod) putOutside() []string {
	w.t.Helper()
	service := &pod.Object{Kind: pod.KindService, Name: "out", Service: &pod.Service{Type: pod.ServiceClusterIP, Ports: []pod.ServicePort{
		{Name: "web", Protocol: "TCP", Port: 80}, {Name: "dns", Protocol: "UDP", Port: 53}, {Name: "none", Protocol: "TCP", Port: 82},
	}}}
	heads := &pod.Object{Kind: pod.KindService, Name: "heads", Service: &pod.Service{Type: pod.ServiceClusterIP, ClusterIPs: []string{"None"}}}
	ports := []pod.EndpointPort{{Name: "web", Protocol: "TCP", Port: 7000}, {Name: "dns", Protocol: "UDP", Port: 7000}, {Name: "none", Protocol: "TCP", Port: 7999}}
	list := []pod.ServiceEndpoint{{Address: "10.77.0.2", Hostname: "one", Ports: ports}, {Address: "10.77.0.3", NotReady: true, Ports: ports}}
	if err := w.dirs.Networks(nil).AssignClusterIPs(service, nil); err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(w.dirs.Runtime, 0o700); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range []*pod.Object{
		service, heads,
		{Kind: pod.KindEndpointSlice, Name: "out-1", Endpoints: &pod.Endpoints{Service: "out", List: list}},
		{Kind: pod.KindEndpoints, Name: "heads", Endpoints: &pod.Endpoints{Service: "heads", List: list}},
	} {
		o.Namespace, o.UID, o.Revision = "default", o.Name, 1
		if err := w.dirs.PutObject(o); err != nil {
			w.t.Fatal(err)
		}
	}
	var usable []string
	for _, a := range service.Service.ClusterIPs {
		if net.ParseIP(a) != nil {
			usable = append(usable, a)
		}
	}
	return usable
}
