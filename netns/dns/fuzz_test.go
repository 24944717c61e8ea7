package dns

import (
	"net"
	"testing"
	"time"
)

// FuzzHostFile checks that any content of the host's resolv.conf gives servers, each an address
// with a port, and limited timeouts.
func FuzzHostFile(f *testing.F) {
	f.Add("nameserver 10.0.0.1\nnameserver fe80::1%eth0\noptions rotate use-vc timeout:99 attempts:0\n")
	f.Add("nameserver\nnameserver x y\n;\n#\n\x00options timeout:-1 attempts:99999999999999999999 :\n")
	f.Add("nameserver [")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseHost(text)
		if len(c.servers) == 0 || len(c.servers) > maxServers || c.timeout < time.Second || c.timeout > maxTimeout || c.attempts < 1 || c.attempts > maxAttempts {
			t.Fatalf("%+v", c)
		}
		for _, s := range c.servers {
			if _, _, err := net.SplitHostPort(s); err != nil {
				t.Fatalf("server %q: %v", s, err)
			}
		}
	})
}

// FuzzUpstream checks that no bytes of an upstream server crash the code that matches answers with
// questions.
func FuzzUpstream(f *testing.F) {
	question := packed(f, "www.example.org A")
	f.Add(question, question)
	f.Add(packed(f, "web A", edns(1232)), []byte{0, 1, 0x80, 0, 0, 1})
	f.Fuzz(func(t *testing.T, msg, answer []byte) {
		q, code := parse(msg, false)
		if q == nil || code != 0 {
			return
		}
		if matches(answer, msg) {
			isServerFailure(answer)
			if b := q.truncated(answer); len(b) > q.limit {
				t.Fatalf("%d bytes for a client that takes %d", len(b), q.limit)
			}
		}
	})
}
