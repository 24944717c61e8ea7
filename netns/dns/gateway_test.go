package dns

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/services"
)

// TestDigInPod sends queries from a pod's network to its gateway, as containers do.
func TestDigInPod(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.Need(t, func() error { _, err := exec.LookPath("dig"); return err })
	serve(t, "127.0.0.53", says("192.0.2.1"))
	path, _ := hostFile(t, "nameserver 127.0.0.53\n")
	large := crowded(3000)
	v := known()
	large.Services[0].Namespace = "large"
	some := map[string]string{"some": "yes"}
	large.Services = append(large.Services, services.Service{Namespace: "large", Name: "some", Selector: some})
	for i := range large.Pods {
		large.Pods[i].Namespace = "large"
		if i < 200 {
			large.Pods[i].Labels = map[string]string{"app": "db", "some": "yes"}
		}
	}
	v.Services, v.Pods = append(v.Services, large.Services...), append(v.Pods, large.Pods...)
	r := New(func() *View { return v }, path)
	t.Cleanup(r.Close)

	pods := nettest.NewRouterBed(t)
	podNS := pods.NewPod(t, 1)
	traffic, err := pods.Router.OpenTraffic(pods.Pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := egress.Start(egress.Config{RouterNS: pods.RouterNS, Pool: pods.Pool, Slot: 1, Names: r}, traffic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for _, gateway := range []string{pods.Pool.Gateway().V4.String(), pods.Pool.Gateway().V6.String()} {
		for _, c := range []struct{ args, want string }{
			{"+short web.ns.svc.cluster.local", "10.88.128.1\n"},
			{"+short +tcp web.ns.svc.cluster.local", "10.88.128.1\n"},
			{"+short www.example.org", "192.0.2.1\n"},
			{"+short -x 10.88.128.1", "web.ns.svc.cluster.local.\n"},
			{"+noall +comments many.large.svc.cluster.local", "ANSWER: 3000,"}, // truncated, and repeated with TCP: 48 kB
			{"+noall +comments +ignore +bufsize=4096 some.large.svc.cluster.local", "ANSWER: 200,"},
		} {
			var out []byte
			err := nsthread.Do(func() (err error) {
				out, err = exec.Command("dig", append([]string{"@" + gateway, "+tries=1", "+time=5", "+nocookie"}, strings.Fields(c.args)...)...).CombinedOutput()
				return err
			}, podNS)
			if err != nil || !strings.Contains(string(out), c.want) {
				t.Errorf("dig @%s %s: %v: %s\nwant %s", gateway, c.args, err, out, c.want)
			}
		}
	}
	// The resolver serves pods only, not the host.
	if out, err := exec.Command("dig", "@127.0.0.1", "+tries=1", "+time=1", "web.ns.svc.cluster.local").CombinedOutput(); err == nil {
		t.Errorf("the host answers: %s", out)
	}
}
