// Package probe probes servers by HTTP, TCP and gRPC, as the kubelet's probes and lifecycle hooks do
// (Kubernetes: pkg/probe, pkg/kubelet/lifecycle).
//
// The caller's Dial function decides from where connections are made.
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

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// Dial makes a connection, in the network in which the probes run.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Prober probes the servers of one pod. It keeps no connection between two probes.
type Prober struct {
	host    string // the pod's address
	dial    Dial
	h2c     *http.Transport
	general *http.Transport // for all but h2c: HTTP may redirect to HTTPS
}

// New returns a Prober for the pod at the address host.
func New(host string, dial Dial) *Prober {
	p := &Prober{host: host, dial: dial, h2c: transport(dial), general: transport(dial)}
	p.h2c.Protocols = new(http.Protocols)
	p.h2c.Protocols.SetUnencryptedHTTP2(true)
	// Like the kubelet the Prober verifies no certificate: a certificate does not show whether the container is
	// healthy.
	p.general.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	p.general.ForceAttemptHTTP2 = true
	return p
}

// maxHeader limits how much of a header is read, so that a server cannot fill the supervisor's memory. buffer is
// the size of a connection's buffer: requests and most answers are short.
const (
	maxHeader = 64 << 10
	buffer    = 1 << 10
)

func transport(dial Dial) *http.Transport {
	return &http.Transport{
		DialContext: closeWithProbe(dial), DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeader, ReadBufferSize: buffer, WriteBufferSize: buffer,
	}
}

// probeContextKey is the context key of a probe's own context, which outlives a single dial.
type probeContextKey struct{}

// withProbeContext returns the context of one probe. Its connections end when cancel is called.
func withProbeContext(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	return context.WithValue(ctx, probeContextKey{}, ctx), cancel
}

// closeWithProbe returns a Dial whose connections end with the probe. After a probe's end net/http would complete
// its dial or TLS handshake for later requests: the connections to a server that never answers would stay open.
func closeWithProbe(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if q, ok := ctx.Value(probeContextKey{}).(context.Context); ok {
			ctx = q
		}
		conn, err := dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// Run runs a handler, other than a command, and returns the outcome of a probe. It ends with the time-out
// or ctx.
func (p *Prober) Run(ctx context.Context, h *pod.Handler, timeout time.Duration) (lifecycle.Outcome, string) {
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
	conn.Close() // an open port is a success
	return lifecycle.Success, ""
}

func (p *Prober) address(host string, port int) string {
	if host == "" {
		host = p.host
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// dialError adds the time-out to the error of a dial that took too long.
func dialError(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("timeout after %v: %w", timeout, err)
	}
	return err
}
