package dns

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/podrun/podrun/internal/testenv"
)

func newResolver(t *testing.T, path string) *Resolver {
	r := New(known, path)
	t.Cleanup(r.Close)
	return r
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]hostConf{
		"": {servers: []string{"127.0.0.1:53", "[::1]:53"}, timeout: 5 * time.Second, attempts: 2},
		"nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .":                                         {servers: []string{"127.0.0.53:53"}, timeout: 5 * time.Second, attempts: 2},
		"nameserver fe80::1%eth0\nnameserver ::1\nnameserver 1.1.1.1\nnameserver 2.2.2.2":                 {servers: []string{"[fe80::1%eth0]:53", "[::1]:53", "1.1.1.1:53"}, timeout: 5 * time.Second, attempts: 2},
		"nameserver 1.1.1.1\noptions rotate use-vc timeout:1 attempts:3":                                  {servers: []string{"1.1.1.1:53"}, timeout: time.Second, attempts: 3, rotate: true, useTCP: true},
		"nameserver 1.1.1.1\noptions timeout:99 attempts:99":                                              {servers: []string{"1.1.1.1:53"}, timeout: 30 * time.Second, attempts: 5},
		"nameserver 1.1.1.1\noptions timeout:0 attempts:-1\noptions timeout:x attempts\noptions timeout:": {servers: []string{"1.1.1.1:53"}, timeout: 5 * time.Second, attempts: 2},
	} {
		if diff := cmp.Diff(want, parseHost(text), cmp.AllowUnexported(hostConf{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestForward(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.53", says("192.0.2.1"))
	path, _ := hostFile(t, "nameserver 127.0.0.53\n")
	r := newResolver(t, path)
	for q, want := range map[string]string{
		"www.example.org A":           "192.0.2.1",
		"www.example.org AAAA":        "",
		"web.ns.svc.cluster.local A":  "10.88.128.1",
		"out.ns.svc.cluster.local A":  "=www.example.org. 192.0.2.1",
		"none.ns.svc.cluster.local A": "NXDOMAIN",
	} {
		if got := asks(t, r, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
}

// TestOwnServers: a pod's own name servers are queried instead of the host's.
func TestOwnServers(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.2", says("192.0.2.2"))
	serve(t, "127.0.0.3", says("192.0.2.3"))
	path, _ := hostFile(t, "nameserver 127.0.0.2\n")
	r := New(known, path, "127.0.0.3")
	t.Cleanup(r.Close)
	for q, want := range map[string]string{"www.example.org A": "192.0.2.3", "web.ns.svc.cluster.local A": "10.88.128.1"} {
		if got := asks(t, r, q); got != want {
			t.Errorf("%s: %q, want %q", q, got, want)
		}
	}
}

func TestHostFileIsReread(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.2", says("192.0.2.2"))
	serve(t, "127.0.0.3", says("192.0.2.3"))
	path, write := hostFile(t, "nameserver 127.0.0.2\n")
	r := newResolver(t, path)
	for i, server := range []string{"2", "3", "2"} {
		if i > 0 {
			write("nameserver 127.0.0." + server + "\n")
		}
		if got := asks(t, r, "www.example.org A"); got != "192.0.2."+server {
			t.Errorf("%s is asked while the file says 127.0.0.%s", got, server)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	serve(t, "127.0.0.1", says("192.0.2.1"))
	if got := asks(t, r, "www.example.org A"); got != "192.0.2.1" {
		t.Errorf("%s is asked without a file, want the one on the loopback", got)
	}
}

func TestRotate(t *testing.T) {
	testenv.NoLeaks(t)
	serve(t, "127.0.0.2", says("192.0.2.2"))
	serve(t, "127.0.0.3", says("192.0.2.3"))
	path, write := hostFile(t, "nameserver 127.0.0.2\nnameserver 127.0.0.3\noptions rotate\n")
	r := newResolver(t, path)
	if a, b := asks(t, r, "a.example A"), asks(t, r, "a.example A"); a == b {
		t.Errorf("%s is asked twice", a)
	}
	write("nameserver 127.0.0.2\nnameserver 127.0.0.3\n")
	for range 3 {
		if got := asks(t, r, "a.example A"); got != "192.0.2.2" {
			t.Errorf("%s is asked, want the first", got)
		}
	}
}

func TestNextServer(t *testing.T) {
	for name, first := range map[string]func([]byte, bool) [][]byte{
		"in trouble": fails(dnsmessage.RCodeServerFailure), "refuses": fails(dnsmessage.RCodeRefused), "silent": silent,
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			serve(t, "127.0.0.2", first)
			serve(t, "127.0.0.3", says("192.0.2.3"))
			path, _ := hostFile(t, "nameserver 127.0.0.2\nnameserver 127.0.0.4\nnameserver 127.0.0.3\n") // no server at 4
			if got := asks(t, newResolver(t, path), "a.example A"); got != "192.0.2.3" {
				t.Errorf("answer %q", got)
			}
		})
	}
}

func TestNoServerAnswers(t *testing.T) {
	testenv.NoLeaks(t)
	s := serve(t, "127.0.0.2", silent)
	path, write := hostFile(t, "nameserver 127.0.0.2\noptions timeout:1 attempts:2\n")
	r := newResolver(t, path)
	if got := asks(t, r, "a.example A"); got != "ServerFailure" || s.asked.Load() != 2 {
		t.Errorf("%q after %d tries", got, s.asked.Load())
	}
	write("nameserver 127.0.0.9\n")
	if got := asks(t, r, "a.example A"); got != "ServerFailure" {
		t.Errorf("%q", got)
	}
	serve(t, "127.0.0.3", fails(dnsmessage.RCodeNameError))
	write("nameserver 127.0.0.3\nnameserver 127.0.0.2\n")
	if got := asks(t, r, "a.example A"); got != "NXDOMAIN" {
		t.Errorf("a name that is not there: %q", got)
	}
}
