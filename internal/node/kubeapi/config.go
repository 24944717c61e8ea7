// Package kubeapi is a small client of a Kubernetes API server: kubeconfig files, requests, watches. It has no
// generated client of Kubernetes' groups, which would add 20 MB to the binary.
package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config locates and authenticates to an API server.
type Config struct {
	Server     string // https://host:port; a path may follow
	CA         []byte // PEM; empty: the certificate authorities of the host
	ServerName string // name in the server's certificate, if it differs from the host of Server (tls-server-name)
	Token      string // bearer token
	// ClientCertificate returns the current client certificate; nil if none is used. It is read for each new
	// connection, so it may be rotated.
	ClientCertificate func() (*tls.Certificate, error)
}

const (
	dialTimeout  = 10 * time.Second
	idleTimeout  = 90 * time.Second
	pingInterval = 30 * time.Second // client-go: HTTP2_READ_IDLE_TIMEOUT_SECONDS
	pingTimeout  = 15 * time.Second // client-go: HTTP2_PING_TIMEOUT_SECONDS
)

// tlsConfig returns the TLS settings of connections.
func (c *Config) tlsConfig() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if len(c.CA) > 0 {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("read certificate-authority: it has no certificate in PEM")
		}
	}
	if c.ClientCertificate != nil {
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := c.ClientCertificate()
			if cert == nil && err == nil {
				cert = &tls.Certificate{} // none, as crypto/tls spells it
			}
			return cert, err
		}
	}
	return t, nil
}

// baseURL returns Server without a slash at its end. It refuses a URL that is not https, because a token would be
// readable on the network.
func (c *Config) baseURL() (string, error) {
	u, err := url.Parse(c.Server)
	if err != nil {
		return "", fmt.Errorf("read server: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("read server: %q is not https://HOST:PORT", c.Server)
	}
	return strings.TrimRight(c.Server, "/"), nil
}

// newTransport returns a transport without connections. A dead connection is found by HTTP/2 pings, and by TCP
// keep-alives if a proxy permits only HTTP/1.1.
func newTransport(t *tls.Config) *http.Transport {
	dialer := &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pingInterval, Interval: pingTimeout, Count: 2},
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment, // as the kubelet
		DialContext:         dialer.DialContext,
		TLSClientConfig:     t.Clone(),
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
		IdleConnTimeout:     idleTimeout,
	}
}
