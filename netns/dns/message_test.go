package dns

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/podrun/podrun/netns/services"
)

// packed returns a query as received.
func packed(t testing.TB, q string, change ...func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 4711, RecursionDesired: true}, Questions: []dnsmessage.Question{question(q).question}}
	for _, c := range change {
		c(&m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func edns(size int) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		h := dnsmessage.ResourceHeader{}
		h.SetEDNS0(size, 0, false)
		m.Additionals = append(m.Additionals, dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}})
	}
}

func unpacked(t testing.TB, b []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		t.Fatalf("an answer that cannot be read: %v", err)
	}
	return m
}

// crowded returns a headless Service with n pods.
func crowded(n int) *View {
	v := &View{Namespace: "ns", Catalog: services.Catalog{Services: []services.Service{{Namespace: "ns", Name: "many", Selector: app}}}}
	for i := range n {
		v.Pods = append(v.Pods, services.Pod{Namespace: "ns", Name: fmt.Sprint("p", i), Labels: app, Ready: true,
			Addresses: addresses(fmt.Sprintf("10.88.%d.%d", i/250, 2+i%250))})
	}
	return v
}

// alone returns a resolver without upstream servers.
func alone(t testing.TB, v *View) *Resolver {
	r := New(func() *View { return v }, "/proc/none")
	t.Cleanup(r.Close)
	return r
}

func TestAnswersFitWhatTheClientTakes(t *testing.T) {
	r := alone(t, crowded(500))
	for _, c := range []struct {
		name    string
		msg     []byte
		stream  bool
		records int
		cut     bool
	}{
		{"plain UDP", packed(t, "many A"), false, 0, true},
		{"EDNS of 1232", packed(t, "many A", edns(1232)), false, 0, true},
		{"EDNS of 65535", packed(t, "many A", edns(65535)), false, 500, false},
		{"EDNS of nothing is 512", packed(t, "many A", edns(0)), false, 0, true},
		{"TCP", packed(t, "many A"), true, 500, false},
		{"TCP with a small EDNS", packed(t, "many A", edns(512)), true, 500, false},
	} {
		b := r.answer(c.msg, c.stream)
		m := unpacked(t, b)
		if len(m.Answers) != c.records || m.Truncated != c.cut || m.RCode != 0 || m.ID != 4711 {
			t.Errorf("%s: %d records in %d bytes, cut %v, %v", c.name, len(m.Answers), len(b), m.Truncated, m.RCode)
		}
		if had := bytes.Contains([]byte(c.name), []byte("EDNS")); had != (len(m.Additionals) == 1) {
			t.Errorf("%s: %d additional records", c.name, len(m.Additionals))
		}
	}
	// More than fits in any message.
	if m := unpacked(t, alone(t, crowded(5000)).answer(packed(t, "many A"), true)); !m.Truncated || len(m.Answers) != 0 {
		t.Errorf("80 kB: cut %v, %d records", m.Truncated, len(m.Answers))
	}
}

func TestHeaders(t *testing.T) {
	r := alone(t, known())
	m := unpacked(t, r.Answer(packed(t, "web.ns.svc.cluster.local A")))
	if h := m.Header; !h.Response || !h.Authoritative || !h.RecursionDesired || !h.RecursionAvailable || h.ID != 4711 || m.Answers[0].Header.TTL != ttl {
		t.Errorf("header %+v, answers %v", h, m.Answers)
	}
	m = unpacked(t, r.Answer(packed(t, "None.ns.svc.cluster.local A")))
	soa, ok := m.Authorities[0].Body.(*dnsmessage.SOAResource)
	if m.RCode != dnsmessage.RCodeNameError || !ok || soa.MinTTL != ttl || m.Questions[0].Name.String() != "None.ns.svc.cluster.local." {
		t.Errorf("a name that is not there: %+v", m)
	}
}

func TestRubbish(t *testing.T) {
	r := alone(t, known())
	ask := packed(t, "web A")
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(ask)
		f(b)
		return b
	}
	loop := append(bytes.Clone(ask[:12]), 0xc0, 12, 0, 1, 0, 1) // a name that points to itself
	two := packed(t, "web A", func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) })
	for _, c := range []struct {
		name string
		msg  []byte
		want string // "" for no answer
	}{
		{"nothing", nil, ""},
		{"half a header", ask[:11], ""},
		{"an answer", change(func(b []byte) { b[2] |= 0x80 }), ""},
		{"a header", ask[:12], "RCodeFormatError"},
		{"half a question", ask[:20], "RCodeFormatError"},
		{"a loop", loop, "RCodeFormatError"},
		{"two questions", two, "RCodeFormatError"},
		{"records that are not there", change(func(b []byte) { b[11] = 9 }), "RCodeFormatError"},
		{"an update", change(func(b []byte) { b[2] |= 5 << 3 }), "RCodeNotImplemented"},
		{"another class", packed(t, "web A", func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }), "RCodeRefused"},
		{"EDNS of a later version", packed(t, "web A", edns(1232), func(m *dnsmessage.Message) { m.Additionals[0].Header.TTL = 1 << 16 }), "RCodeSuccess"},
		{"bytes after the end", append(bytes.Clone(ask), "more"...), "RCodeSuccess"},
	} {
		b := r.Answer(c.msg)
		got := ""
		if b != nil {
			got = unpacked(t, b).RCode.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(b) > 3*len(c.msg)+60 {
			t.Errorf("%s: %d bytes are answered with %d", c.name, len(c.msg), len(b))
		}
	}
	b := r.Answer(packed(t, "web A", edns(1232), func(m *dnsmessage.Message) { m.Additionals[0].Header.TTL = 1 << 16 }))
	if m := unpacked(t, b); m.Additionals[0].Header.TTL>>24 != 1 || len(m.Answers) != 0 {
		t.Errorf("a later version of EDNS is not answered with BADVERS: %+v", m)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, q := range []string{"web A", "_http._tcp.web SRV", "out A", "www.example.org A", "1.128.88.10.in-addr.arpa PTR"} {
		f.Add(packed(f, q))
		f.Add(packed(f, q, edns(4096)))
	}
	v := known()
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, stream := range []bool{false, true} {
			q, code := parse(msg, stream)
			if q == nil || code != 0 {
				continue
			}
			a, alias, ours := v.resolve(q, 1)
			if !ours && alias == "" {
				continue
			}
			b := q.reply(a)
			if len(b) > q.limit {
				t.Fatalf("%d bytes for a client that takes %d", len(b), q.limit)
			}
			if m := unpacked(t, b); !m.Response || m.ID != q.ID || !strings.EqualFold(m.Questions[0].Name.String(), q.question.Name.String()) {
				t.Fatalf("%+v", m)
			}
		}
	})
}
