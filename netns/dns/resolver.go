package dns

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// HostResolvConf is the host's resolv.conf.
const HostResolvConf = "/etc/resolv.conf"

// Resolver answers the queries of one pod.
type Resolver struct {
	view     func() *View
	upstream upstream
	ctx      context.Context
	cancel   context.CancelFunc
	inFlight chan struct{} // limits concurrent queries
	rotation atomic.Uint32
}

const (
	// maxQueries limits a pod's concurrent queries; datagrams beyond that are lost, and clients
	// retry.
	maxQueries = 256

	idleTimeout = 10 * time.Second // of a connection (RFC 7766: a few seconds)
)

// New returns a resolver. view returns the current View; it must be fast. hostFile is
// HostResolvConf; servers, unless there are none, are queried instead of its name servers.
func New(view func() *View, hostFile string, servers ...string) *Resolver {
	r := &Resolver{view: view, upstream: upstream{path: hostFile, servers: servers}, inFlight: make(chan struct{}, maxQueries)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close cancels the pending queries.
func (r *Resolver) Close() { r.cancel() }

// Answer returns the answer to a query that came in a datagram, or nil.
func (r *Resolver) Answer(msg []byte) []byte { return r.answer(msg, false) }

// ServeConn serves a connection until its end, and closes it.
func (r *Resolver) ServeConn(c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(r.ctx, func() { c.Close() })()
	for r.ctx.Err() == nil {
		c.SetDeadline(time.Now().Add(idleTimeout))
		msg, err := readMessage(c)
		if err != nil {
			return
		}
		answer := r.answer(msg, true)
		c.SetDeadline(time.Now().Add(idleTimeout))
		if answer == nil || writeMessage(c, answer) != nil {
			return
		}
	}
}

func (r *Resolver) answer(msg []byte, stream bool) []byte {
	select {
	case r.inFlight <- struct{}{}:
		defer func() { <-r.inFlight }()
	default:
		return nil
	}
	q, code := parse(msg, stream)
	switch {
	case q == nil:
		return nil
	case code != dnsmessage.RCodeSuccess:
		return q.reply(answer{code: code})
	case q.version != 0:
		return q.reply(answer{code: badVersion})
	}
	a, alias, authoritative := r.view().resolve(q, int(r.rotation.Add(1)))
	switch {
	case authoritative:
		return q.reply(a)
	case alias != "":
		return q.reply(r.resolveAlias(q, a, alias))
	}
	return r.forward(q, msg, stream)
}

// forward forwards a query to the host's resolvers.
func (r *Resolver) forward(q *query, msg []byte, stream bool) []byte {
	b, err := r.upstream.query(r.ctx, msg, stream)
	if err != nil {
		return q.reply(answer{code: dnsmessage.RCodeServerFailure})
	}
	if len(b) <= q.limit {
		return b
	}
	return q.truncated(b)
}

// truncated returns an answer without the records that make it too long.
func (q *query) truncated(msg []byte) []byte {
	b := q.reply(answer{code: dnsmessage.RCode(msg[3] & 0xf)})
	b[2] |= 2
	return b
}

// resolveAlias queries the host's resolvers for the target of a Service's ExternalName.
func (r *Resolver) resolveAlias(q *query, a answer, alias string) answer {
	name, err := dnsmessage.NewName(alias + ".")
	if err != nil {
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	ask := dnsmessage.Message{
		Header:    dnsmessage.Header{RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: q.question.Type, Class: q.question.Class}},
	}
	msg, err := ask.Pack()
	if err != nil {
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	b, err := r.upstream.query(r.ctx, msg, true)
	var p dnsmessage.Parser
	if err != nil {
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	h, err := p.Start(b)
	if err == nil {
		err = p.SkipAllQuestions()
	}
	var records []dnsmessage.Resource
	if err == nil {
		records, err = p.AllAnswers()
	}
	if err != nil {
		return answer{code: dnsmessage.RCodeServerFailure}
	}
	a.authoritative, a.code = false, h.RCode
	a.records = append(a.records, records...)
	return a
}
