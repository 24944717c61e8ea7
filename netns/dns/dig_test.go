package dns

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
)

// serving answers on a port of the loopback, with UDP and TCP, as a pod's gateway does.
func serving(t *testing.T, r *Resolver) (port string) {
	t.Helper()
	if err := netns.LoopbackUp("/proc/thread-self/ns/net"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	go func() {
		b := make([]byte, maxSize)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				break
			}
			if answer := r.Answer(b[:n]); answer != nil {
				u.WriteTo(answer, from)
			}
		}
		done <- struct{}{}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			go r.ServeConn(c)
		}
		done <- struct{}{}
	}()
	t.Cleanup(func() {
		u.Close()
		l.Close()
		<-done
		<-done
	})
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// TestDig uses an independent client, which checks the answers.
func TestDig(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.Need(t, func() error { _, err := exec.LookPath("dig"); return err })
	serve(t, "127.0.0.53", says("192.0.2.1"))
	path, _ := hostFile(t, "nameserver 127.0.0.53\n")
	many := crowded(100).Catalog
	v := known()
	v.Services, v.Pods = append(v.Services, many.Services...), append(v.Pods, many.Pods...)
	v.Services[len(v.Services)-1].Namespace = "large"
	for i := range many.Pods {
		v.Pods[len(v.Pods)-1-i].Namespace = "large"
	}
	r := New(func() *View { return v }, path)
	t.Cleanup(r.Close)
	port := serving(t, r)
	dig := func(args string) string {
		all := append([]string{"@127.0.0.1", "-p", port, "+tries=1", "+time=5", "+nocookie"}, strings.Fields(args)...)
		out, err := exec.Command("dig", all...).CombinedOutput()
		if err != nil {
			t.Errorf("dig %s: %v: %s", args, err, out)
		}
		return string(out)
	}
	for _, c := range []struct{ args, want string }{
		{"+short web.ns.svc.cluster.local", "10.88.128.1\n"},
		{"+short +tcp web.ns.svc.cluster.local AAAA", "fd88::8001\n"},
		{"+short _http._tcp.web.ns.svc.cluster.local SRV", "0 100 80 web.ns.svc.cluster.local.\n"},
		{"+short -x 10.88.0.2", "db-0.db.ns.svc.cluster.local.\n"},
		{"+short -x fd88::8001", "web.ns.svc.cluster.local.\n"},
		{"+short out.ns.svc.cluster.local", "www.example.org.\n192.0.2.1\n"},
		{"+short www.example.org", "192.0.2.1\n"},
		{"+short +tcp www.example.org", "192.0.2.1\n"},
		{"+noall +comments none.ns.svc.cluster.local", "status: NXDOMAIN"},
		{"+noall +authority none.ns.svc.cluster.local", "hostmaster.cluster.local. 1 7200 1800 86400 1"},
		{"+noall +comments +ignore +bufsize=512 many.large.svc.cluster.local", "flags: qr aa tc rd ra"},
		{"+noall +comments +bufsize=4096 many.large.svc.cluster.local", "ANSWER: 100,"},
		{"+noall +comments +noedns many.large.svc.cluster.local", "ANSWER: 100,"}, // with TCP, after a truncated answer
		{"+noall +comments +edns=1 +noednsneg web.ns.svc.cluster.local", "status: BADVERS"},
		{"+noall +comments +opcode=notify web.ns.svc.cluster.local", "status: NOTIMP"},
	} {
		if got := dig(c.args); !strings.Contains(got, c.want) || strings.Contains(c.args, "+short") && got != c.want {
			t.Errorf("dig %s: %s\nwant %s", c.args, got, c.want)
		}
	}
}
