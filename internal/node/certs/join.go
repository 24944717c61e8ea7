// Package certs gives a node its certificates: it finds and verifies a cluster as kubeadm join does, and requests and
// renews the certificates of the client and of the server of the node, as the kubelet does.
package certs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// JoinOptions are the arguments of kubeadm join.
type JoinOptions struct {
	Endpoint     string   // HOST:PORT of an API server
	Token        string   // bootstrap token, ID.SECRET
	CACertHashes []string // sha256:HEX of the public key of a certificate authority; one of them must match
	// UnsafeSkipCAVerification permits a join without a hash: everyone who has the token can then pose as the API
	// server.
	UnsafeSkipCAVerification bool
}

const (
	clusterInfoPath    = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	clusterInfoLimit   = 1 << 20 // bytes; a ConfigMap has less
	clusterInfoTimeout = 30 * time.Second
	newTokenHint       = "make a new token on a control-plane node: kubeadm token create --print-join-command"
)

var (
	tokenForm = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`) // cluster-bootstrap: BootstrapTokenPattern
	hashForm  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Join finds the cluster of an API server and returns how to reach it with the token (kubeadm:
// app/discovery/token/token.go). It reads the ConfigMap cluster-info without trust, verifies its signature with the
// token and the certificate authorities in it with the hashes, and reads it again over a connection that an authority
// with one of the hashes certifies. Then the other authorities in it are trusted, too.
func Join(ctx context.Context, o JoinOptions) (*kubeapi.Config, error) {
	token, err := o.check()
	if err != nil {
		return nil, err
	}
	info, err := o.untrustedInfo(ctx)
	if err != nil {
		return nil, report.New(report.Failure, "", "read cluster-info of %s: %w", o.Endpoint, err)
	}
	text := info.Data["kubeconfig"]
	if text == "" {
		return nil, report.New(report.Failure, "join with a bootstrap kubeconfig: this cluster was not made by kubeadm", "read cluster-info of %s: it has no kubeconfig", o.Endpoint)
	}
	signature := info.Data["jws-kubeconfig-"+token[0]]
	if signature == "" {
		return nil, report.New(report.Failure, newTokenHint, "verify cluster-info of %s: the token %s is unknown there, or it has expired", o.Endpoint, token[0])
	}
	if !signedBy(signature, text, token[0], token[1]) {
		return nil, report.New(report.Failure, "compare the token and the address with the output of kubeadm token create --print-join-command",
			"verify cluster-info of %s: its signature is not by the token %s, so this API server is not trusted", o.Endpoint, token[0])
	}
	config, err := kubeapi.ParseKubeconfig([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig in cluster-info of %s: %w", o.Endpoint, err)
	}
	pinned, err := o.checkAuthority(config.CA)
	if err != nil {
		return nil, err
	}
	if err := o.compare(ctx, pinned, text); err != nil {
		return nil, err
	}
	config.Token = o.Token
	return config, nil
}

// check returns the id and the secret of the token.
func (o *JoinOptions) check() ([]string, error) {
	host, port, err := net.SplitHostPort(o.Endpoint)
	if number, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil || number == 0 || host == "" {
		return nil, report.New(report.Usage, "", "the API server %q is not HOST:PORT", o.Endpoint)
	}
	token := tokenForm.FindStringSubmatch(o.Token)
	if token == nil {
		return nil, report.New(report.Usage, newTokenHint, "the token is not of the form abcdef.0123456789abcdef")
	}
	for _, h := range o.CACertHashes {
		if !hashForm.MatchString(strings.ToLower(h)) {
			return nil, report.New(report.Usage, newTokenHint, "the hash %q is not sha256: and 64 hexadecimal digits", h)
		}
	}
	if len(o.CACertHashes) == 0 && !o.UnsafeSkipCAVerification {
		return nil, report.New(report.Usage, "give --discovery-token-ca-cert-hash, or --discovery-token-unsafe-skip-ca-verification",
			"without the hash of its certificate authority, the API server %s cannot be verified", o.Endpoint)
	}
	return token[1:], nil
}

// untrustedInfo reads cluster-info from whatever answers at the endpoint. It sends no token.
func (o *JoinOptions) untrustedInfo(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterInfoTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.Endpoint+clusterInfoPath, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}} // the signature is verified instead
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %q", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, clusterInfoLimit+1))
	if err != nil {
		return nil, err
	}
	if len(body) > clusterInfoLimit {
		return nil, errors.New("it is larger than 1 MiB")
	}
	var info corev1.ConfigMap
	return &info, json.Unmarshal(body, &info)
}

// signedBy verifies a detached JWS with HS256 (cluster-bootstrap: token/jws/jws.go; RFC 7515, appendix F).
func signedBy(signature, content, id, secret string) bool {
	header, sum, ok := strings.Cut(signature, "..")
	if !ok {
		return false
	}
	var h struct{ Alg, Kid string }
	text, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil || json.Unmarshal(text, &h) != nil || h.Alg != "HS256" || h.Kid != id {
		return false
	}
	got, err := base64.RawURLEncoding.DecodeString(sum)
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, header+"."+base64.RawURLEncoding.EncodeToString([]byte(content)))
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

// checkAuthority compares the public keys of certificates with the hashes (kubeadm: app/util/pubkeypin), and returns
// the certificates that match: whoever knows the token can sign a bundle of the real authority and another one. Without
// hashes it returns all.
func (o *JoinOptions) checkAuthority(bundle []byte) (pinned []byte, err error) {
	authorities, err := readAuthorities(bundle)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority in cluster-info of %s: %w", o.Endpoint, err)
	}
	var found []string
	for _, cert := range authorities {
		hash := keyHash(cert)
		if slices.ContainsFunc(o.CACertHashes, func(h string) bool { return strings.EqualFold(h, hash) }) {
			pinned = append(pinned, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		}
		found = append(found, hash)
	}
	switch {
	case len(o.CACertHashes) == 0: // UnsafeSkipCAVerification
		return bundle, nil
	case len(pinned) > 0:
		return pinned, nil
	}
	return nil, report.New(report.Failure, "compare the address and the hash with the output of kubeadm token create --print-join-command: if they are right, another server answers",
		"verify the certificate authority of %s: its hash is %s, not %s", o.Endpoint, strings.Join(found, " or "), strings.Join(o.CACertHashes, " or "))
}

// readAuthorities returns the certificates of a bundle, at least one.
func readAuthorities(bundle []byte) (certificates []*x509.Certificate, err error) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, cert)
	}
	if len(certificates) == 0 {
		return nil, errors.New("it has no certificate")
	}
	return certificates, nil
}

// KeyHash returns the hash of the public key of a bundle's first certificate, as in JoinOptions: sha256:HEX.
func KeyHash(bundle []byte) (string, error) {
	certificates, err := readAuthorities(bundle)
	if err != nil {
		return "", err
	}
	return keyHash(certificates[0]), nil
}

func keyHash(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// compare reads cluster-info again, over a connection that the certificate authority certifies.
func (o *JoinOptions) compare(ctx context.Context, ca []byte, want string) error {
	client, err := kubeapi.NewClient(&kubeapi.Config{Server: "https://" + o.Endpoint, CA: ca})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", o.Endpoint, err)
	}
	defer client.CloseIdleConnections()
	var info corev1.ConfigMap
	if err := client.Get(ctx, clusterInfoPath, &info); err != nil {
		return report.New(report.Failure, "join with an address that is in the certificate of the API server", "read cluster-info of %s again, over a verified connection: %w", o.Endpoint, err)
	}
	if info.Data["kubeconfig"] != want {
		return report.New(report.Failure, "", "verify cluster-info of %s: over a verified connection it has another kubeconfig than before", o.Endpoint)
	}
	return nil
}
