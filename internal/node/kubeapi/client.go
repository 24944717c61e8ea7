// Package kubeapi is a client of the Kubernetes API server: requests, watches and kubeconfig files. It has no typed
// clientset, which would add every API group to the binary.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/report"
)

// Config locates an API server and authenticates to it.
type Config struct {
	Server     string // https://host:port
	CA         []byte // certificates in PEM
	ServerName string // in the server's certificate; "" for the host of Server
	Token      string // "" for none
	// ClientCertificate returns the client certificate; nil for none. It is called for each connection.
	ClientCertificate func() (*tls.Certificate, error)
}

// Client sends requests to an API server.
type Client struct {
	config    *Config
	base      *url.URL
	transport *http.Transport
}

// Limits of a server that does not answer, or answers too much.
const (
	dialTime     = 10 * time.Second
	responseTime = 30 * time.Second
	maxObject    = 10 << 20 // bytes of one object or event
	maxList      = 64 << 20 // bytes of a list
)

// NewClient returns a client.
func NewClient(c *Config) (*Client, error) {
	base, err := url.Parse(c.Server)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, report.New(report.Usage, "", "the API server %q is no address of the form https://HOST:PORT", c.Server)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, report.New(report.Usage, "", "the certificate authority of the API server %s has no certificate", c.Server)
	}
	tlsConfig := &tls.Config{RootCAs: roots, ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if get := c.ClientCertificate; get != nil {
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return get() }
	}
	dialer := &net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: dialTime,
		ResponseHeaderTimeout: responseTime, ForceAttemptHTTP2: true,
		// A connection that a network has dropped without a word is found by pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &Client{config: c, base: base, transport: t}, nil
}

// CloseIdleConnections makes the next request use a new connection, and so the current client certificate.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// Get reads an object. A path has the form /api/v1/nodes/NAME, with a query if need be.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, into)
}

// Create creates an object. into, which may be nil, receives it as the server has created it.
func (c *Client) Create(ctx context.Context, path string, object, into any) error {
	return c.send(ctx, http.MethodPost, path, object, into)
}

// Update replaces an object.
func (c *Client) Update(ctx context.Context, path string, object, into any) error {
	return c.send(ctx, http.MethodPut, path, object, into)
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, path string, kind types.PatchType, body []byte, into any) error {
	return c.do(ctx, http.MethodPatch, path, string(kind), body, into)
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, path string, options *metav1.DeleteOptions) error {
	return c.send(ctx, http.MethodDelete, path, options, nil)
}

func (c *Client) send(ctx context.Context, method, path string, object, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %T: %w", object, err)
	}
	return c.do(ctx, method, path, "application/json", body, into)
}

// do sends a request, and decodes its answer. An error of the server is an *apierrors.StatusError.
func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, into any) error {
	answer, err := c.request(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := readLimited(answer.Body, maxObject)
	if err != nil {
		return fmt.Errorf("read the answer of the API server to %s %s: %w", method, path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the answer of the API server to %s %s: %w", method, path, err)
	}
	return nil
}

// request sends a request, and returns a successful answer.
func (c *Client) request(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	target, err := c.base.Parse(strings.TrimSuffix(c.base.Path, "/") + path)
	if err != nil {
		return nil, fmt.Errorf("make the request %s %s: %w", method, path, err)
	}
	r, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request %s %s: %w", method, path, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "podrun")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.config.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	answer, err := c.transport.RoundTrip(r) // without redirects
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target.Redacted(), err)
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := readLimited(answer.Body, maxObject)
	if err != nil {
		return nil, fmt.Errorf("read the answer of the API server to %s %s: %w", method, path, err)
	}
	return nil, statusError(method, path, answer, text)
}

// statusError returns the error that an answer has.
func statusError(method, path string, answer *http.Response, text []byte) error {
	st := metav1.Status{}
	if json.Unmarshal(text, &st) == nil && st.Kind == "Status" && st.Status == metav1.StatusFailure {
		if st.Code == 0 {
			st.Code = int32(answer.StatusCode)
		}
		return &apierrors.StatusError{ErrStatus: st}
	}
	return apierrors.NewGenericServerResponse(answer.StatusCode, method, schema.GroupResource{}, path, report.Escape(strings.TrimSpace(string(text[:min(len(text), 200)]))), 0, true)
}

// errTooLarge is the error for an answer that is larger than its limit.
var errTooLarge = errors.New("it is larger than the limit")

// readLimited reads all of r, up to limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%w of %d MiB", errTooLarge, limit>>20)
	}
	return text, err
}
