// Package probe asks servers how they are: by HTTP, TCP and gRPC, as the kubelet's
// probes and lifecycle hooks do (Kubernetes: pkg/probe, pkg/kubelet/lifecycle).
//
// Where a connection begins is the caller's to say: it gives the Dial function.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// Dial makes a connection, from wherever the probes are to come.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Prober asks the servers of one pod. It keeps no connection between two questions.
type Prober struct {
	host       string // the pod's own address
	dial       Dial
	plain      *exchange
	h2c, crypt *http.Transport
}

// New gives a Prober of the pod at an address.
func New(host string, dial Dial) *Prober {
	p := &Prober{host: host, dial: dial, h2c: transport(dial), crypt: transport(dial)}
	p.plain = &exchange{dial, p.crypt}
	p.h2c.Protocols = new(http.Protocols)
	p.h2c.Protocols.SetUnencryptedHTTP2(true)
	// The kubelet verifies no certificate either: it says nothing of whether the
	// container is well.
	p.crypt.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	p.crypt.ForceAttemptHTTP2 = true
	return p
}

// maxHeader is how much of a header is read: nobody who is asked may fill the memory of
// who asks. buffer is what a connection takes at a time: requests and most answers are short.
const (
	maxHeader = 64 << 10
	buffer    = 1 << 10
)

func transport(dial Dial) *http.Transport {
	return &http.Transport{
		DialContext: untilAnswered(dial), DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeader, ReadBufferSize: buffer, WriteBufferSize: buffer,
	}
}

// questionKey is the key of a question's context, in which it is.
type questionKey struct{}

// question gives the context of one question. Its connections end with it, which is
// what cancel is for.
func question(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	return context.WithValue(ctx, questionKey{}, ctx), cancel
}

// untilAnswered makes connections that end with the question. net/http goes on with one
// that is being made, and with a TLS handshake, for a request that may come: a server that
// takes connections and says nothing would have all of them kept.
func untilAnswered(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if q, ok := ctx.Value(questionKey{}).(context.Context); ok {
			ctx = q
		}
		conn, err := dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// Ask does what a handler says, other than to run a command, and judges the answer
// as a probe. It ends when the time-out or ctx does.
func (p *Prober) Ask(ctx context.Context, h *pod.Handler, timeout time.Duration) (lifecycle.Outcome, string) {
	switch {
	case h.HTTP != nil:
		return p.http(ctx, h.HTTP, timeout)
	case h.TCP != nil:
		return p.tcp(ctx, h.TCP, timeout)
	case h.GRPC != nil:
		return p.grpc(ctx, h.GRPC, timeout)
	}
	return lifecycle.Unknown, "missing probe handler"
}

func (p *Prober) tcp(ctx context.Context, t *pod.TCPSocket, timeout time.Duration) (lifecycle.Outcome, string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", p.address(t.Host, t.Port))
	if err != nil {
		return lifecycle.Failure, dialError(ctx, err, timeout).Error()
	}
	conn.Close() // that it opened is all
	return lifecycle.Success, ""
}

func (p *Prober) address(host string, port int) string {
	if host == "" {
		host = p.host
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// dialError says of a connection that took too long how long that was.
func dialError(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("timeout after %v: %w", timeout, err)
	}
	return err
}
