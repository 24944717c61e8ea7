package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/podrun/podrun/internal/node/certs"
	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

const nodeSubject = "CN=system:node:n1,O=system:nodes"

// node returns a node whose reports go to the channel.
func node(t *testing.T) (certs.Node, chan error) {
	t.Helper()
	reports := make(chan error, 100)
	return certs.Node{Name: "n1", Dir: t.TempDir(), Report: func(err error) { reports <- err }}, reports
}

// bootstrap starts Bootstrap, and returns its result and a function that kills it.
func bootstrap(t *testing.T, s *server, n certs.Node) (result chan error, kill context.CancelFunc) {
	t.Helper()
	ctx, kill := context.WithCancel(testContext(t))
	result = make(chan error, 1)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		result <- certs.Bootstrap(ctx, s.bootstrapConfig(), n, filepath.Join(n.Dir, "kubeconfig"))
	}()
	t.Cleanup(func() { kill(); receive(t, ended) })
	return result, kill
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, reports := node(t)
	result, kill := bootstrap(t, s, n)
	defer kill()
	name := receive(t, s.created)
	if err := receive(t, reports); !strings.Contains(err.Error(), "waits for approval") || report.Hint(err) != "kubectl certificate approve "+name {
		t.Errorf("the report is %v, with the hint %q", err, report.Hint(err))
	}
	spec := s.request(name)
	if spec.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" || !slices.Equal(spec.Usages, []certificatesv1.KeyUsage{"digital signature", "client auth"}) {
		t.Errorf("the request is %+v", spec)
	}
	s.approve(name)
	if err := receive(t, result); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(n.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, e.Name()+" "+info.Mode().String())
	}
	if want := []string{"kubeconfig -rw-------", "kubelet-client-current.pem -rw-------"}; !slices.Equal(files, want) {
		t.Errorf("the files are %q, want %q", files, want)
	}
	config, err := kubeapi.LoadKubeconfig(filepath.Join(n.Dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if config.Token != "" {
		t.Error("the kubeconfig has the token")
	}
	if who := s.ask(t, config); who != nodeSubject {
		t.Errorf("with the kubeconfig the server saw %q", who)
	}
	if len(reports) > 0 {
		t.Errorf("another report: %v", <-reports)
	}
}

// ask sends a request, and returns as whom the server saw it.
func (s *server) ask(t *testing.T, config *kubeapi.Config) string {
	t.Helper()
	c, err := kubeapi.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := c.Get(testContext(t), csrPath, &certificatesv1.CertificateSigningRequestList{}); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

// TestBootstrapIsContinued: after a kill the request that was sent is continued.
func TestBootstrapIsContinued(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, _ := node(t)
	result, kill := bootstrap(t, s, n)
	name := receive(t, s.created)
	kill()
	if err := receive(t, result); !errors.Is(err, context.Canceled) {
		t.Errorf("killed: %v", err)
	}
	s.approve(name)
	result, kill = bootstrap(t, s, n)
	defer kill()
	if err := receive(t, result); err != nil {
		t.Fatal(err)
	}
	if len(s.created) > 0 {
		t.Error("another request was created")
	}
}

// TestBootstrapIsRefused: the error has the server's reason, and the next call sends another request if it must.
func TestBootstrapIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	otherKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(der []byte) func(name string) {
		return func(name string) {
			s.condition(name, certificatesv1.CertificateApproved)
			s.decide(name, func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = der })
		}
	}
	template := &x509.Certificate{SerialNumber: s.cert.SerialNumber, Subject: pkix.Name{CommonName: "system:node:n1"}, NotAfter: time.Now().Add(time.Hour)}
	change := func(f func(*x509.Certificate)) func(name string) {
		return func(name string) {
			s.mu.Lock()
			s.forget = f
			s.mu.Unlock()
			s.approve(name)
		}
	}
	for _, c := range []struct {
		name   string
		decide func(name string)
		want   string
	}{
		{"denied", func(name string) { s.condition(name, certificatesv1.CertificateDenied) }, "is Denied: Test: by the test"},
		{"failed", func(name string) { s.condition(name, certificatesv1.CertificateFailed) }, "is Failed: Test: by the test"},
		{"removed", func(name string) { s.remove(name) }, "was removed"},
		{"not a certificate", issue([]byte("hello")), "failed to find certificate PEM data"},
		{"another key", issue(s.sign(t, template, &otherKey.PublicKey)), "private key does not match public key"},
		{"another node", change(func(c *x509.Certificate) { c.Subject.CommonName = "system:node:n2" }), "it is for system:node:n2"},
		{"expired", change(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "it expired on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, _ := node(t)
			result, kill := bootstrap(t, s, n)
			defer kill()
			name := receive(t, s.created)
			s.waitForWatch(t, name)
			c.decide(name)
			if err := receive(t, result); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(n.Dir, "kubeconfig")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is a kubeconfig: %v", err)
			}
			_, kill = bootstrap(t, s, n)
			defer kill()
			if again := receive(t, s.created); again == name {
				t.Error("the next call has the same request")
			}
		})
	}
}

func TestBootstrapWithAnExpiredToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n, _ := node(t)
	result, kill := bootstrap(t, s, n)
	defer kill()
	s.waitForWatch(t, receive(t, s.created))
	s.mu.Lock()
	s.refuse = true
	s.mu.Unlock()
	s.cut()
	for range 2 { // while it waits, and at the start
		if err := receive(t, result); err == nil || !strings.Contains(err.Error(), "Unauthorized") || !strings.Contains(report.Hint(err), "podrun node join") {
			t.Errorf("the error is %v, with the hint %q", err, report.Hint(err))
		}
		result, kill = bootstrap(t, s, n)
		defer kill()
	}
	if _, err := os.Stat(filepath.Join(n.Dir, "kubelet-client.key.tmp")); err != nil {
		t.Errorf("the key is gone, so the request cannot be continued: %v", err)
	}
}
