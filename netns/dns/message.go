package dns

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// ttl is in seconds: local records are cheap to query again, and they change.
	ttl = 1

	plainSize = 512   // maximum of a client's UDP answers without EDNS (RFC 1035)
	ednsSize  = 1232  // maximum of UDP answers that podrun advertises
	maxSize   = 65535 // of any message
)

// query is a client's query.
type query struct {
	dnsmessage.Header
	question dnsmessage.Question
	name     string // in lower case, without the final dot
	edns     bool
	version  byte // of EDNS
	limit    int  // maximum bytes of an answer
}

// parse reads a query. It returns nil for a message that is not a query and gets no answer, and an
// error code for one that can be answered only with an error.
func parse(msg []byte, stream bool) (*query, dnsmessage.RCode) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.Response {
		return nil, 0
	}
	q := &query{Header: h, limit: plainSize}
	if stream {
		q.limit = maxSize
	}
	if h.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, dnsmessage.RCodeFormatError
	}
	q.question = questions[0]
	q.name = strings.ToLower(strings.TrimSuffix(q.question.Name.String(), "."))
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil || q.options(&p, stream) != nil {
		return q, dnsmessage.RCodeFormatError
	}
	return q, dnsmessage.RCodeSuccess
}

// options reads EDNS, which is among the additional records.
func (q *query) options(p *dnsmessage.Parser, stream bool) error {
	for {
		h, err := p.AdditionalHeader()
		if err == dnsmessage.ErrSectionDone {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Type == dnsmessage.TypeOPT {
			q.edns, q.version = true, byte(h.TTL>>16)
			if !stream {
				q.limit = max(plainSize, int(h.Class))
			}
		}
		if err := p.SkipAdditional(); err != nil {
			return err
		}
	}
}

// answer is the content of a reply.
type answer struct {
	code          dnsmessage.RCode
	authoritative bool
	records       []dnsmessage.Resource
	noData        bool   // an SOA record states for how long this holds
	domain        string // of the names of pods and Services
	additional    []dnsmessage.Resource
}

// badVersion is the part of BADVERS, 16, in the header; the rest of the code is in EDNS.
const badVersion = 16

// reply returns the message for a client. If it is too long for the client it is truncated and
// marked so.
func (q *query) reply(a answer) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID: q.ID, Response: true, OpCode: q.OpCode, RecursionDesired: q.RecursionDesired, RecursionAvailable: true,
		Authoritative: a.authoritative, RCode: a.code & 0xf,
	}}
	if q.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.question}
	}
	var opt []dnsmessage.Resource
	if q.edns {
		h := dnsmessage.ResourceHeader{}
		if h.SetEDNS0(ednsSize, a.code, false) == nil {
			opt = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
		}
	}
	m.Answers, m.Additionals = a.records, append(opt, a.additional...)
	if a.noData {
		m.Authorities = []dnsmessage.Resource{authority(q.name, a.domain)}
	}
	b, err := m.Pack()
	if err == nil && len(b) > q.limit && len(a.additional) > 0 { // the client can query it
		m.Additionals = opt
		b, err = m.Pack()
	}
	if err == nil && len(b) <= q.limit {
		return b
	}
	m.Truncated, m.Answers, m.Authorities, m.Additionals = err == nil, nil, nil, opt
	if err != nil {
		m.RCode = dnsmessage.RCodeServerFailure
	}
	b, _ = m.Pack()
	return b
}

// authority returns the SOA record of the zone of a name; domain is the domain of the names of pods and Services.
func authority(name, domain string) dnsmessage.Resource {
	zone := domain
	for _, z := range []string{internal, "in-addr.arpa", "ip6.arpa"} {
		if name == z || strings.HasSuffix(name, "."+z) {
			zone = z
		}
	}
	return dnsmessage.Resource{
		Header: header(dnsmessage.MustNewName(zone+"."), dnsmessage.TypeSOA),
		Body: &dnsmessage.SOAResource{NS: dnsmessage.MustNewName("ns.dns." + domain + "."), MBox: dnsmessage.MustNewName("hostmaster." + domain + "."),
			Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, MinTTL: ttl},
	}
}

func header(name dnsmessage.Name, kind dnsmessage.Type) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: name, Type: kind, Class: dnsmessage.ClassINET, TTL: ttl}
}

// addressRecords returns the address records of one type.
func addressRecords(name dnsmessage.Name, kind dnsmessage.Type, addresses []netip.Addr) (list []dnsmessage.Resource) {
	for _, a := range addresses {
		switch {
		case a.Is4() && kind == dnsmessage.TypeA:
			list = append(list, dnsmessage.Resource{Header: header(name, kind), Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && kind == dnsmessage.TypeAAAA:
			list = append(list, dnsmessage.Resource{Header: header(name, kind), Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return list
}
