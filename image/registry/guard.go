package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
)

// credentialGuard watches where the library's requests to a registry send credentials, and how much the
// registry sends. net/http compares neither port nor scheme before it repeats a login to a redirect's target,
// and the library requests a token from any address. The library's HTTP client is internal to it, and a mirror
// may get another one later. So the guard traces the requests by their contexts: it closes the connection when a
// credential was written to the buffer of a request that must not have it. A header that is longer than the
// buffer is sent in parts, so no part of such a request is sent before it is checked.
//
// A registry gets its login at its own scheme, host and port. A token server gets it at one address, with
// https if the registry has https. A token goes to its registry only.
type credentialGuard struct {
	hosts []string // of the registry and its mirrors

	mu      sync.Mutex
	current string // the registry of the last request
	known   map[string]*endpoint
	maximum uint64 // of bytes from all connections; 0: none
	conns   map[*net.TCPConn]uint64
}

// endpoint is what a guard has recorded about a registry.
type endpoint struct {
	secure bool   // it has answered with TLS
	basic  bool   // it gets the login itself
	realm  string // the token server
}

// newGuard returns a guard for a registry and its mirrors, which bounds what they send until unlimit.
func newGuard(hosts []string) *credentialGuard {
	return &credentialGuard{hosts: hosts, known: map[string]*endpoint{}, maximum: maxManifestBytes, conns: map[*net.TCPConn]uint64{}}
}

// unlimit removes the limit of received bytes: manifest, config and signatures are read.
func (g *credentialGuard) unlimit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maximum, g.conns = 0, nil
}

// call is a call of the library. Its requests come one after another.
type call struct {
	*credentialGuard // its mutex protects the rest
	ctx              context.Context
	cancel           context.CancelCauseFunc
	metered          bool
	conn             net.Conn
	secure           bool
	held             bool   // the connection writes nothing until the header is checked
	target           string // of the request being written: host or host:port
	current          string // the registry of the last request
}

// watch returns a context for a call of the library. Its cause is the error of a refused request.
func (g *credentialGuard) watch(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	g.mu.Lock()
	c := &call{credentialGuard: g, ctx: ctx, cancel: cancel, current: g.current}
	g.mu.Unlock()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: c.connected, WroteHeaderField: c.wroteHeader, WroteHeaders: c.wroteHeaders, WroteRequest: c.wroteRequest,
	}), cancel
}

// refusedLogin is the cause of a call that ended because its credentials would have gone to another address.
type refusedLogin struct{ error }

func (e *refusedLogin) Unwrap() error { return e.error }

// registryHosts returns the addresses of an image's registry and of its mirrors.
func registryHosts(sys *types.SystemContext, name reference.Named) ([]string, error) {
	hosts := []string{hostOf(reference.Domain(name))}
	r, err := sysregistriesv2.FindRegistry(sys, name.Name())
	if err != nil || r == nil {
		return hosts, err
	}
	sources, err := r.PullSourcesFromReference(name)
	for _, s := range sources {
		hosts = append(hosts, hostOf(reference.Domain(s.Reference)))
	}
	return hosts, err
}

// hostOf returns the address that the library uses for a registry.
func hostOf(domain string) string {
	host := strings.ToLower(domain)
	if host == "docker.io" {
		return "registry-1.docker.io"
	}
	return host
}

func (c *call) connected(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = info.Conn
	_, c.secure = info.Conn.(*tls.Conn)
	if !c.metered {
		c.metered = true
		c.meter()
	}
}

// meter cancels the call if the registry sends too much, until the call ends or unlimit was called. The library
// bounds neither the number of signatures nor the body of an error.
func (c *call) meter() {
	switch {
	case c.maximum == 0 || c.ctx.Err() != nil:
	case c.received() > c.maximum:
		c.conn.Close()
		c.cancel(report.New(report.Failure, "", "the registry sends more than %d bytes of manifests and signatures", c.maximum))
	default:
		time.AfterFunc(meterInterval, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.meter()
		})
	}
}

// received returns the number of bytes that all connections have received.
func (c *call) received() (sum uint64) {
	under := c.conn
	for secure, ok := under.(*tls.Conn); ok; secure, ok = under.(*tls.Conn) { // also of a proxy
		under = secure.NetConn()
	}
	if plain, ok := under.(*net.TCPConn); ok {
		if raw, err := plain.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { // an error means that the connection is closed
				if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
					c.conns[plain] = info.Bytes_received
				}
			})
		}
	}
	for _, n := range c.conns {
		sum += n
	}
	return sum
}

func (c *call) wroteHeader(key string, values []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, v := range values {
		switch kind, _, _ := strings.Cut(v, " "); {
		case key == "Host":
			c.begin(strings.ToLower(v))
			if c.held = c.mustHold(); c.held {
				_ = c.conn.SetWriteDeadline(time.Unix(1, 0)) // an error means that the connection is closed
			}
		case key == ":authority": // HTTP/2 sends a header after all of it was traced
			c.begin(strings.ToLower(v))
		case strings.EqualFold(key, "Authorization"):
			err = c.check(strings.EqualFold(kind, "Bearer"))
		case strings.EqualFold(key, "Content-Type") && strings.HasPrefix(v, "application/x-www-form-urlencoded"): // a login follows
			err = c.check(false)
		}
	}
	if err != nil {
		c.conn.Close() // before the buffer is flushed
		c.cancel(err)
	}
}

// wroteHeaders lets the connection write again: the header of a request is checked.
func (c *call) wroteHeaders() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.held = false
		_ = c.conn.SetWriteDeadline(time.Time{}) // an error means that the connection is closed
	}
}

// wroteRequest sets the reason for a request that ended before its header was checked.
func (c *call) wroteRequest(info httptrace.WroteRequestInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held && errors.Is(info.Err, os.ErrDeadlineExceeded) {
		c.cancel(c.refusal())
	}
}

// mustHold reports whether the header of a request to the target must be held back until check has seen
// all of it, because it may contain a login that the target must not get. A held request fails if its
// header is longer than the connection's buffer. So mustHold leaves out hosts for which net/http removes the
// login itself: a registry may redirect to a content server with a very long address. There only a login at
// a token server remains. For example the registry first names the token server a.example, and then
// b.example: check refuses the second login, but a part of a long header may have been sent already. That
// gives nothing away, because the registry could have named b.example first.
func (c *call) mustHold() bool {
	r := c.known[c.current]
	if r == nil || r.secure && !c.secure {
		return true
	}
	return c.target != c.current && (r.basic || r.realm != "" && r.realm != c.target) &&
		(keepsLogin(c.current, c.target) || keepsLogin(r.realm, c.target))
}

// keepsLogin is net/http's rule for the hosts of a redirect.
func keepsLogin(from, to string) bool {
	from, to = (&url.URL{Host: from}).Hostname(), (&url.URL{Host: to}).Hostname()
	return to == from || strings.HasSuffix(to, "."+from)
}

// begin records a request to a host.
func (c *call) begin(host string) {
	c.target = host
	if !slices.Contains(c.hosts, host) {
		return
	}
	c.current, c.credentialGuard.current = host, host
	if c.known[host] == nil {
		c.known[host] = &endpoint{}
	}
	if c.secure {
		c.known[host].secure = true
	}
}

// check returns an error if a credential must not be sent to the target.
func (c *call) check(token bool) error {
	registry := c.known[c.current]
	switch {
	case registry == nil, registry.secure && !c.secure:
		return c.refusal()
	case c.target == c.current:
		registry.basic = registry.basic || !token
	case token, registry.basic, registry.realm != "" && registry.realm != c.target:
		return c.refusal()
	default:
		registry.realm = c.target
	}
	return nil
}

// refusal returns the error of a credential that the target must not get.
func (c *call) refusal() error {
	registry, scheme, reason := c.known[c.current], "https", "its scheme, host or port is another"
	if registry == nil {
		return &refusedLogin{errors.New("refused to send credentials before the registry's challenge")}
	}
	if !c.secure {
		scheme = "http"
	}
	if registry.secure && !c.secure {
		reason = "the connection has no TLS"
	}
	return &refusedLogin{report.New(report.Failure, "use the registry's own address in the image's name, or log out: podrun logout "+c.current,
		"refused to send the login of registry %s to %s://%s: %s", c.current, scheme, c.target, reason)}
}

// maxManifestBytes bounds what a registry may send until an image's manifest, config and signatures are
// read: a few times the largest size of these.
const maxManifestBytes = 64 << 20

// meterInterval is the time between two checks of what a registry has sent.
const meterInterval = 50 * time.Millisecond
