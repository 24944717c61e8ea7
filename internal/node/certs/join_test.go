package certs_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/report"
)

// sign returns a detached JWS, as the controller-manager makes it.
func sign(content, id, secret string) string {
	header := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, id))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *server) clusterInfo(kubeconfig string) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"kubeconfig": kubeconfig, "jws-kubeconfig-abcdef": sign(kubeconfig, "abcdef", "0123456789abcdef")}}
}

// kubeadmKubeconfig is what kubeadm publishes.
func kubeadmKubeconfig(a *authority) string {
	return "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString(a.pem) +
		"\n    server: https://control-plane.test:6443\n  name: \"\"\ncontexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {}\nusers: null\n"
}

func TestJoin(t *testing.T) {
	other := newAuthority(t)
	hash := func(a *authority) string {
		sum := sha256.Sum256(a.cert.RawSubjectPublicKeyInfo)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	for _, c := range []struct {
		name   string
		change func(s *server, o *certs.JoinOptions)
		want   string // the error; empty: none
		hint   string
	}{
		{"the right hash", func(*server, *certs.JoinOptions) {}, "", ""},
		{"one of two hashes, in capitals", func(_ *server, o *certs.JoinOptions) {
			o.CACertHashes = []string{hash(other), strings.ToUpper(o.CACertHashes[0])}
		}, "", ""},
		{"no hash, and permission", func(_ *server, o *certs.JoinOptions) { o.CACertHashes, o.UnsafeSkipCAVerification = nil, true }, "", ""},
		{"no hash", func(_ *server, o *certs.JoinOptions) { o.CACertHashes = nil }, "cannot be verified", "--discovery-token-ca-cert-hash"},
		{"a wrong hash", func(_ *server, o *certs.JoinOptions) { o.CACertHashes = []string{hash(other)} }, ", not " + hash(other), "compare the address and the hash"},
		{"a wrong hash, and permission for none", func(_ *server, o *certs.JoinOptions) {
			o.CACertHashes, o.UnsafeSkipCAVerification = []string{hash(other)}, true
		}, ", not " + hash(other), "compare"},
		{"a malformed hash", func(_ *server, o *certs.JoinOptions) { o.CACertHashes = []string{"sha256:12"} }, `the hash "sha256:12" is not`, "kubeadm token create"},
		{"a malformed token", func(_ *server, o *certs.JoinOptions) { o.Token = "x" }, "the token is not of the form", "kubeadm token create"},
		{"a malformed endpoint", func(_ *server, o *certs.JoinOptions) { o.Endpoint = "https://api.test/" }, "is not HOST:PORT", ""},
		{"an unknown token", func(_ *server, o *certs.JoinOptions) { o.Token = "zzzzzz.0123456789abcdef" }, "the token zzzzzz is unknown there, or it has expired", "kubeadm token create"},
		{"a wrong secret", func(_ *server, o *certs.JoinOptions) { o.Token = "abcdef.ffffffffffffffff" }, "its signature is not by the token abcdef", "compare the token"},
		{"no cluster-info", func(s *server, _ *certs.JoinOptions) { s.info = func() (int, *corev1.ConfigMap) { return 404, nil } }, `"404 Not Found"`, ""},
		{"no kubeconfig", func(s *server, _ *certs.JoinOptions) {
			s.info = func() (int, *corev1.ConfigMap) { return 200, &corev1.ConfigMap{} }
		}, "it has no kubeconfig", "bootstrap kubeconfig"},
		{"no authority", func(s *server, o *certs.JoinOptions) {
			s.info = func() (int, *corev1.ConfigMap) {
				return 200, s.clusterInfo("clusters: [{cluster: {server: 'https://x.test'}}]")
			}
		}, "it has no certificate", ""},
		{"a file of this host", func(s *server, o *certs.JoinOptions) {
			s.info = func() (int, *corev1.ConfigMap) {
				return 200, s.clusterInfo("clusters: [{cluster: {server: 'https://x.test', certificate-authority: /etc/ssl/certs/ca-certificates.crt}}]")
			}
		}, "a file is not supported", ""},
		{"too large", func(s *server, _ *certs.JoinOptions) {
			s.info = func() (int, *corev1.ConfigMap) { return 200, s.clusterInfo(strings.Repeat("x", 2<<20)) }
		}, "larger than 1 MiB", ""},
		{"a server in between", func(s *server, o *certs.JoinOptions) { o.Endpoint = strings.TrimPrefix(s.serve(t, other), "https://") },
			"over a verified connection: GET " + clusterInfoPath + ": tls: failed to verify certificate", "in the certificate of the API server"},
		{"a server in between that knows the token", func(s *server, o *certs.JoinOptions) {
			s.info = func() (int, *corev1.ConfigMap) {
				return 200, s.clusterInfo(kubeadmKubeconfig(&authority{pem: slices.Concat(s.pem, other.pem)}))
			}
			o.Endpoint = strings.TrimPrefix(s.serve(t, other), "https://")
		}, "over a verified connection: GET " + clusterInfoPath + ": tls: failed to verify certificate", "in the certificate of the API server"},
		{"another answer", func(s *server, _ *certs.JoinOptions) {
			answers := []*corev1.ConfigMap{s.clusterInfo(kubeadmKubeconfig(s.authority)), s.clusterInfo(kubeadmKubeconfig(s.authority) + "\n")}
			s.info = func() (int, *corev1.ConfigMap) {
				first := answers[0]
				answers = slices.Delete(answers, 0, 1)
				return 200, first
			}
		}, "another kubeconfig than before", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.info = func() (int, *corev1.ConfigMap) { return 200, s.clusterInfo(kubeadmKubeconfig(s.authority)) }
			o := certs.JoinOptions{Endpoint: s.endpoint, Token: testToken, CACertHashes: []string{hash(s.authority)}}
			c.change(s, &o)
			config, err := certs.Join(testContext(t), o)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(report.Hint(err), c.hint) {
					t.Errorf("the error is %v, with the hint %q; want %q with %q", err, report.Hint(err), c.want, c.hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if config.Server != "https://control-plane.test:6443" || string(config.CA) != string(s.pem) || config.Token != testToken {
				t.Errorf("the config is %+v", config)
			}
		})
	}
}
