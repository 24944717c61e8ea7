package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/containers/image/v5/types"

	"github.com/podrun/podrun/internal/report"
)

// credentialGuard watches where the library's first requests to a registry send credentials. net/http
// compares neither port nor scheme before it repeats a login to a redirect's target, and the library requests
// a token from any address. The library's client is accessible only after these requests (see
// restrictClient). So the guard traces them: it closes the connection when a credential was written to the
// buffer of a request that must not have it. A header that is longer than the buffer is sent in parts, so no
// part of such a request is sent before it is checked.
//
// A registry gets its login at its own scheme, host and port. A token server gets it at one address, with
// https if the registry has https. A token goes to its registry only.
type credentialGuard struct {
	hosts  []string // of the registry and its mirrors
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	conn    net.Conn
	secure  bool
	held    bool   // the connection writes nothing until the header is checked
	target  string // of the request being written: host or host:port
	current string // the registry of the last request
	known   map[string]*endpoint
}

// endpoint is what a guard has recorded about a registry.
type endpoint struct {
	secure bool   // it has answered with TLS
	basic  bool   // it gets the login itself
	realm  string // the token server
}

// guardCredentials returns a context for the requests to a registry. Its cause is the error of a refused
// request.
func guardCredentials(ctx context.Context, hosts []string) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &credentialGuard{hosts: hosts, cancel: cancel, known: map[string]*endpoint{}}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: g.connected, WroteHeaderField: g.wroteHeader, WroteHeaders: g.wroteHeaders, WroteRequest: g.wroteRequest,
	}), cancel
}

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

func (g *credentialGuard) connected(info httptrace.GotConnInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = info.Conn
	_, g.secure = info.Conn.(*tls.Conn)
}

func (g *credentialGuard) wroteHeader(key string, values []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	for _, v := range values {
		switch kind, _, _ := strings.Cut(v, " "); {
		case key == "Host":
			g.begin(strings.ToLower(v))
			if g.held = g.mustHold(); g.held {
				_ = g.conn.SetWriteDeadline(time.Unix(1, 0)) // an error means that the connection is closed
			}
		case key == ":authority": // HTTP/2 sends a header after all of it was traced
			g.begin(strings.ToLower(v))
		case strings.EqualFold(key, "Authorization"):
			err = g.check(strings.EqualFold(kind, "Bearer"))
		case strings.EqualFold(key, "Content-Type") && strings.HasPrefix(v, "application/x-www-form-urlencoded"): // a login follows
			err = g.check(false)
		}
	}
	if err != nil {
		g.conn.Close() // before the buffer is flushed
		g.cancel(err)
	}
}

// wroteHeaders lets the connection write again: the header of a request is checked.
func (g *credentialGuard) wroteHeaders() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held {
		g.held = false
		_ = g.conn.SetWriteDeadline(time.Time{}) // an error means that the connection is closed
	}
}

// wroteRequest sets the reason for a request that ended before its header was checked.
func (g *credentialGuard) wroteRequest(info httptrace.WroteRequestInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held && errors.Is(info.Err, os.ErrDeadlineExceeded) {
		g.cancel(g.refusal())
	}
}

// mustHold reports whether the header of a request to the target must be held back until check has seen
// all of it, because it may contain a login that the target must not get. A held request fails if its
// header is longer than the connection's buffer. So mustHold leaves out hosts for which net/http removes the
// login itself: a registry may redirect to a content server with a very long address. There only a login at
// a token server remains. For example the registry first names the token server a.example, and then
// b.example: check refuses the second login, but a part of a long header may have been sent already. That
// gives nothing away, because the registry could have named b.example first.
func (g *credentialGuard) mustHold() bool {
	r := g.known[g.current]
	if r == nil || r.secure && !g.secure {
		return true
	}
	return g.target != g.current && (r.basic || r.realm != "" && r.realm != g.target) &&
		(keepsLogin(g.current, g.target) || keepsLogin(r.realm, g.target))
}

// keepsLogin is net/http's rule for the hosts of a redirect.
func keepsLogin(from, to string) bool {
	from, to = (&url.URL{Host: from}).Hostname(), (&url.URL{Host: to}).Hostname()
	return to == from || strings.HasSuffix(to, "."+from)
}

// begin records a request to a host.
func (g *credentialGuard) begin(host string) {
	g.target = host
	if !slices.Contains(g.hosts, host) {
		return
	}
	g.current = host
	if g.known[host] == nil {
		g.known[host] = &endpoint{}
	}
	if g.secure {
		g.known[host].secure = true
	}
}

// check returns an error if a credential must not be sent to the target.
func (g *credentialGuard) check(token bool) error {
	registry := g.known[g.current]
	switch {
	case registry == nil, registry.secure && !g.secure:
		return g.refusal()
	case g.target == g.current:
		registry.basic = registry.basic || !token
	case token, registry.basic, registry.realm != "" && registry.realm != g.target:
		return g.refusal()
	default:
		registry.realm = g.target
	}
	return nil
}

// refusal returns the error of a credential that the target must not get.
func (g *credentialGuard) refusal() error {
	registry, scheme, why := g.known[g.current], "https", "its scheme, host or port is another"
	if registry == nil {
		return errors.New("refused to send credentials before the registry's challenge")
	}
	if !g.secure {
		scheme = "http"
	}
	if registry.secure && !g.secure {
		why = "the connection has no TLS"
	}
	return report.New(report.Failure, "use the registry's own address in the image's name, or log out: podrun logout "+g.current,
		"refused to send the login of registry %s to %s://%s: %s", g.current, scheme, g.target, why)
}

// maxManifestBytes bounds what a registry may send until an image's manifest, config and signatures are
// read: a few times the largest size of these.
const maxManifestBytes = 64 << 20

// restrictClient makes the client of an open registry remove credentials before it follows a redirect to
// another scheme, host or port, and bounds the answers until free is called. The client is internal to the
// library.
//
// connection is a types.ImageSource, or a types.ImageDestination that has sent its first request.
func restrictClient(connection any) (free func(), err error) {
	v := reflect.ValueOf(connection)
	for _, field := range []string{"c", "client"} {
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return nil, errOtherLibrary
		}
		v = v.Elem().FieldByName(field)
	}
	if !v.IsValid() || v.Type() != reflect.TypeFor[*http.Client]() || v.IsNil() {
		return nil, errOtherLibrary
	}
	client := (*http.Client)(v.UnsafePointer())
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return nil, errOtherLibrary
	}
	m := &meter{Transport: transport}
	m.left.Store(maxManifestBytes)
	client.CheckRedirect, client.Transport = dropLoginOnRedirect, m
	return func() { m.left.Store(math.MaxInt64) }, nil
}

var errOtherLibrary = errors.New("unsupported version of containers/image")

// dropLoginOnRedirect is net/http's own rule for redirects, but it removes credentials.
func dropLoginOnRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	for _, r := range append(slices.Clone(via[1:]), req) {
		if origin(r.URL) != origin(via[0].URL) {
			req.Header.Del("Authorization")
			if req.Body != nil { // of a token request: it has the login
				return errors.New("a token server redirects a login to another scheme, host or port: refused")
			}
		}
	}
	return nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// meter bounds the bytes of all answers together, and refuses answers in several parts.
type meter struct {
	*http.Transport
	left atomic.Int64
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	// podrun requests one range at a time, for which RFC 9110 forbids several parts. The library's reader of
	// parts panics if its connection ends with data.
	if resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "multipart/") {
		resp.Body.Close()
		return nil, report.New(report.Failure, "", "the registry sends several parts for one range")
	}
	resp.Body = &metered{resp.Body, m}
	return resp, nil
}

type metered struct {
	io.ReadCloser
	m *meter
}

func (b *metered) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.m.left.Add(-int64(n)) < 0 {
		return 0, report.New(report.Failure, "", "the registry sends more than %d bytes of manifests and signatures", maxManifestBytes)
	}
	return n, err
}
